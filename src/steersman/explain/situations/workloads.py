"""Deployments, StatefulSets and DaemonSets: paused, past their deadline, waiting for a pod, without a node."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from steersman.explain.model import Case, Document, Finding, Weight
from steersman.explain.owners import controller_of_kind
from steersman.explain.situations.placement import has_selected_labels, matches_affinity, untolerated
from steersman.explain.situations.registry import situation
from steersman.explain.words import at, brief, count

DEADLINE = 600
"""The default of progressDeadlineSeconds."""


def is_ready(pod: Document) -> bool:
    """Whether a pod has the condition Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


@situation("Deployment")
def paused(case: Case) -> Iterator[Finding]:
    """The rollout is paused."""
    if not case.spec.get("paused"):
        return
    outdated = case.status.get("updatedReplicas", 0) < case.spec.get("replicas", 1)
    new = case.snapshot.known("ReplicaSet") and not case.snapshot.owned(case.document, "ReplicaSet")
    yield Finding(
        code="paused",
        subject=case.ref,
        cause="its rollout is paused, and it has no ReplicaSet yet, so there are no pods"
        if new
        else "its rollout is paused, so changes of the pod template are not rolled out",
        controller="deployment-controller",
        next="nothing until it is resumed" if new else "it only scales the ReplicaSets that there are",
        remedy=f"kubectl rollout resume deployment/{case.ref.name}{case.ref.namespace_flag}",
        weight=Weight.BLOCKED if outdated else Weight.NOTE,
    )


@situation("Deployment")
def progress_deadline(case: Case) -> Iterator[Finding]:
    """The rollout has passed its progress deadline, or is still within it."""
    condition = case.condition("Progressing")
    seconds = case.spec.get("progressDeadlineSeconds", DEADLINE)
    if condition.get("reason") == "ProgressDeadlineExceeded":
        yield Finding(
            code="deadline",
            subject=case.ref,
            cause=f"its progress deadline of {seconds} s has passed: {brief(str(condition.get('message', '')))}",
            controller="deployment-controller",
            next="it goes on trying, and does not roll back by itself",
            remedy=f"kubectl rollout undo deployment/{case.ref.name}{case.ref.namespace_flag}, or correct the pod template",
            weight=Weight.CONSEQUENCE,
        )
        return
    updated = case.time(condition.get("lastUpdateTime"))
    wanted = case.spec.get("replicas", 1)
    late = case.status.get("availableReplicas", 0) < wanted or case.status.get("updatedReplicas", 0) < wanted
    if updated is None or not late or case.spec.get("paused") or condition.get("status") != "True":
        return
    due = updated + timedelta(seconds=seconds)
    if due > case.now and condition.get("reason") != "NewReplicaSetAvailable":
        yield Finding(
            code="progressing",
            subject=case.ref,
            cause="its rollout is under way",
            controller="deployment-controller",
            next=f"its progress deadline passes {at(due, case.now)}",
            weight=Weight.NOTE,
        )


@situation("Deployment", "ReplicaSet", "StatefulSet")
def scaled_to_zero(case: Case) -> Iterator[Finding]:
    """The workload is scaled to 0 replicas."""
    if case.spec.get("replicas", 1) == 0 and not case.meta.get("ownerReferences"):
        yield Finding(
            code="scaled-to-zero",
            subject=case.ref,
            cause="it is scaled to 0 replicas",
            controller=controller_of_kind(case.ref.kind),
            remedy=f"kubectl scale {case.ref.kind.lower()}/{case.ref.name}{case.ref.namespace_flag} --replicas=1",
            weight=Weight.WAITS,
        )


@situation("Deployment")
def available_after(case: Case) -> Iterator[Finding]:
    """Pods are ready, and minReadySeconds have not passed."""
    ready, available = case.status.get("readyReplicas", 0), case.status.get("availableReplicas", 0)
    seconds = case.spec.get("minReadySeconds", 0)
    if seconds and ready > available:
        yield Finding(
            code="min-ready",
            subject=case.ref,
            cause=f"{count(ready - available, 'pod')} must stay ready for {seconds} s (minReadySeconds) to be available",
            controller="replicaset-controller",
            next=f"they are available {seconds} s after they became ready",
            weight=Weight.WAITS,
        )


@situation("StatefulSet")
def no_governing_service(case: Case) -> Iterator[Finding]:
    """The Service that gives the pods their DNS names does not exist."""
    name = case.spec.get("serviceName")
    if not name or not case.snapshot.known("Service"):
        return
    if case.snapshot.get("Service", case.ref.namespace, name) is None:
        yield Finding(
            code="governing-service",
            subject=case.ref,
            cause=f"Service {name}, which its serviceName names, does not exist, so its pods have no DNS names",
            controller="endpointslice-controller",
            remedy=f"create a headless Service {name} (clusterIP: None) that selects the pods",
            weight=Weight.NOTE,
        )


@situation("StatefulSet")
def ordered(case: Case) -> Iterator[Finding]:
    """Pods are created and updated one by one, and one of them is not ready."""
    if case.spec.get("podManagementPolicy") == "Parallel":
        return
    pods = {pod["metadata"]["name"]: pod for pod in case.snapshot.owned(case.document, "Pod")}
    replicas, start = case.spec.get("replicas", 1), (case.spec.get("ordinals") or {}).get("start", 0)
    names = [f"{case.ref.name}-{number}" for number in range(start, start + replicas)]
    stuck = next((name for name in names if name in pods and not is_ready(pods[name])), None)
    missing = [name for name in names if name not in pods]
    if stuck is None or not missing:
        return
    yield Finding(
        code="ordered",
        subject=case.ref,
        cause=f"pods are created in order (OrderedReady), and {missing[0]} waits until {stuck} is ready",
        controller="statefulset-controller",
        next=f"it creates {missing[0]} when {stuck} is ready",
        weight=Weight.CONSEQUENCE,
    )


@situation("StatefulSet")
def broken_revision(case: Case) -> Iterator[Finding]:
    """The update does not go on: pods have to be deleted (OnDelete), or one of an old revision would have to become ready first."""
    update = case.status.get("updateRevision", "")
    current = case.status.get("currentRevision", "")
    strategy = case.spec.get("updateStrategy") or {}
    if not update or update == current:
        return
    if strategy.get("type") == "OnDelete":
        yield _updated_by_hand(case)
        return
    if case.spec.get("podManagementPolicy") == "Parallel":
        return
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    for pod in case.snapshot.owned(case.document, "Pod"):
        revision = pod["metadata"].get("labels", {}).get("controller-revision-hash")
        name = pod["metadata"]["name"]
        # A pod below the partition keeps its template, and one that is being deleted is replaced.
        kept = int(name.rpartition("-")[2]) < partition or pod["metadata"].get("deletionTimestamp")
        if revision not in (update, None) and not is_ready(pod) and not kept:
            yield Finding(
                code="broken-revision",
                subject=case.ref,
                cause=f"{name} has an older template and is not ready, and the update waits until it is",
                controller="statefulset-controller",
                next="it never replaces a pod before the one that is not ready becomes ready",
                remedy=f"delete the pod, which is created anew from the new template: kubectl delete pod {name}{case.ref.namespace_flag}",
                weight=Weight.ROOT,
            )
            return


def _updated_by_hand(case: Case) -> Finding:
    return Finding(
        code="on-delete",
        subject=case.ref,
        cause="its update strategy is OnDelete, so pods keep the old template until they are deleted",
        controller=controller_of_kind(case.ref.kind),
        remedy="delete the pods that are to be updated",
    )


@situation("DaemonSet")
def daemonset_on_delete(case: Case) -> Iterator[Finding]:
    """Pods have an old template, and are replaced only when they are deleted."""
    on_delete = (case.spec.get("updateStrategy") or {}).get("type") == "OnDelete"
    outdated = case.status.get("updatedNumberScheduled", 0) < case.status.get("currentNumberScheduled", 0)
    if on_delete and outdated:
        yield _updated_by_hand(case)


@situation("DaemonSet")
def no_node_matches(case: Case) -> Iterator[Finding]:
    """The pods of the DaemonSet belong on no node: nodeSelector, affinity or taints."""
    if case.status.get("desiredNumberScheduled", 0) or not case.status.get("observedGeneration"):
        return
    nodes = list(case.snapshot.objects("Node"))
    pod = (case.spec.get("template") or {}).get("spec") or {}
    selected = [node for node in nodes if has_selected_labels(pod, node)]
    fitting = [node for node in selected if matches_affinity(pod, node)]
    taints = untolerated(pod, fitting)
    if not nodes:
        cause, remedy = "there is no node at all", "add a node"
    elif not selected:
        wanted = ", ".join(f"{name}={value}" for name, value in pod["nodeSelector"].items())
        cause = f"no node of {len(nodes)} has the labels of its nodeSelector ({wanted})"
        remedy = "label the nodes accordingly, or change the nodeSelector"
    elif not fitting:
        cause = f"no node of {len(nodes)} matches its node affinity"
        remedy = "label the nodes accordingly, or change the affinity"
    elif taints:
        cause = (
            "the node that it selects has a taint"
            if len(fitting) == 1
            else f"the {len(fitting)} nodes that it selects have taints"
        )
        cause += f" that it does not tolerate ({taints})"
        remedy = "add a toleration to the pod template, or remove the taint"
    else:
        cause, remedy = f"its controller finds no node of {len(nodes)} that fits", ""
    yield Finding(
        code="no-node-matches",
        subject=case.ref,
        cause=cause,
        controller="daemonset-controller",
        next="it creates a pod on each node that fits from then on",
        remedy=remedy,
    )
