"""Objects that are being deleted and do not go: finalizers, a lost node, a volume in use, content of a namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from steersman.explain.model import Case, Finding, Weight
from steersman.explain.owners import KUBELET, holder
from steersman.explain.situations.registry import ANY, situation
from steersman.explain.words import at, brief, count, duration, some

PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
STORAGE = ("external-provisioner.volume.kubernetes.io/", "external-attacher/")
"""The finalizers by which provisioners and attachers keep a volume until its claim and its attachments are gone."""


def _deleted_for(case: Case) -> timedelta:
    since = case.time(case.meta.get("deletionTimestamp"))
    return max(case.now - since, timedelta()) if since is not None else timedelta()


@situation(ANY)
def finalizers(case: Case) -> Iterator[Finding]:
    """The object is deleted, and waits for a finalizer."""
    if case.meta.get("deletionTimestamp") is None or case.ref.kind == "Namespace":
        return
    held = [each for each in case.meta.get("finalizers") or () if each != PROTECTION]
    if _bound_claim(case):
        # The claim holds them all: `volume_in_use` says so.
        held = [each for each in held if each != VOLUME_PROTECTION and not each.startswith(STORAGE)]
    if not held:
        return
    first = held[0]
    own = holder(first)
    noun = "finalizer" if len(held) == 1 else "finalizers"
    yield Finding(
        code="finalizer",
        subject=case.ref,
        cause=f"deleted {duration(_deleted_for(case))} ago, and waits for the {noun} {some(held)}, which {own} has not removed",
        controller=own,
        next="it is gone when the last finalizer is removed",
        remedy=f"see whether {own} runs and what it says; only if it is gone for good, remove the finalizer by hand",
    )


def _bound_claim(case: Case) -> str:
    """The claim that a PersistentVolume is bound to; empty if there is none."""
    claim = case.spec.get("claimRef") or {}
    bound = case.ref.kind == "PersistentVolume" and case.status.get("phase") == "Bound"
    return f"{claim.get('namespace')}/{claim.get('name')}" if bound else ""


@situation("PersistentVolume")
def volume_in_use(case: Case) -> Iterator[Finding]:
    """The volume is deleted while a claim is bound to it."""
    claim, held = _bound_claim(case), VOLUME_PROTECTION in (case.meta.get("finalizers") or ())
    if case.meta.get("deletionTimestamp") is not None and claim and held:
        yield Finding(
            code="volume-in-use",
            subject=case.ref,
            cause=f"it is deleted, but claim {claim} is still bound to it (finalizer {VOLUME_PROTECTION})",
            controller=holder(VOLUME_PROTECTION),
            next="it is gone when the claim is",
            remedy=f"delete the claim, if its data may go: kubectl delete pvc {claim.partition('/')[2]} -n {claim.partition('/')[0]}",
        )


@situation("PersistentVolumeClaim")
def claim_in_use(case: Case) -> Iterator[Finding]:
    """The claim is deleted while pods use it."""
    if case.meta.get("deletionTimestamp") is None or PROTECTION not in (case.meta.get("finalizers") or ()):
        return
    users = [
        pod["metadata"]["name"]
        for pod in case.snapshot.objects("Pod", case.ref.namespace)
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == case.ref.name
        and pod["spec"].get("nodeName")
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    if not users:
        return
    in_use = f"Pod {users[0]} still uses" if len(users) == 1 else f"Pods {some(users)} still use"
    yield Finding(
        code="claim-in-use",
        subject=case.ref,
        cause=f"it is deleted, but {in_use} it (finalizer {PROTECTION})",
        controller="persistentvolumeclaim-protection-controller",
        next="it is gone as soon as no pod uses it",
        remedy="delete the pod, or the workload that creates it",
    )


@situation("Pod")
def pod_not_gone(case: Case) -> Iterator[Finding]:
    """A deleted pod that does not end: its grace period runs, or its node is lost."""
    if case.meta.get("deletionTimestamp") is None or case.meta.get("finalizers"):
        return
    node = case.spec.get("nodeName", "")
    due = case.time(case.meta.get("deletionTimestamp"))
    if due is not None and due > case.now:
        yield Finding(
            code="grace-period",
            subject=case.ref,
            cause=f"it is being stopped, and has until its grace period of {case.meta.get('deletionGracePeriodSeconds')} s ends",
            controller=KUBELET,
            next=f"the kubelet kills what still runs {at(due, case.now)}",
            weight=Weight.WAITS,
        )
        return
    if not node:
        return
    found = case.snapshot.get("Node", "", node)
    lost = found is None and case.snapshot.known("Node")
    if found is not None:
        ready = Case(case.snapshot, found).condition("Ready")
        lost = ready.get("status") != "True"
    if lost:
        state = "does not exist any more" if found is None else "does not answer"
        yield Finding(
            code="node-lost",
            subject=case.ref,
            cause=f"deleted {duration(_deleted_for(case))} ago, but its node {node} {state}, so no kubelet can confirm that it has stopped",
            controller=KUBELET,
            next="it is gone when the node comes back, or when the Node object is deleted",
            remedy=f"delete Node {node} if it is gone for good, or mark it with the taint node.kubernetes.io/out-of-service",
        )
    else:
        yield Finding(
            code="kubelet-slow",
            subject=case.ref,
            cause=f"deleted {duration(_deleted_for(case))} ago, and the kubelet of {node} has not confirmed that it has stopped",
            controller=KUBELET,
            remedy=f"read the kubelet's log on {node}: a volume that cannot be unmounted is the usual reason",
        )


@situation("Namespace")
def namespace_not_gone(case: Case) -> Iterator[Finding]:
    """A namespace that is being deleted and keeps content."""
    if case.meta.get("deletionTimestamp") is None:
        return
    age = duration(_deleted_for(case))

    def told(type_: str) -> str:
        condition = case.condition(type_)
        return str(condition.get("message", "")) if condition.get("status") == "True" else ""

    discovery = told("NamespaceDeletionDiscoveryFailure")
    if discovery:
        yield Finding(
            code="discovery",
            subject=case.ref,
            cause=f"deleted {age} ago, but an API group cannot be discovered, so its content is not known: {brief(discovery)}",
            controller="namespace-controller",
            next="it tries again, with a growing delay",
            remedy="repair or delete the APIService that does not answer: kubectl get apiservices",
        )
    holding = told("NamespaceFinalizersRemaining")
    if holding:
        names = re.findall(r"(\S+) in \d+ resource instances", holding)
        who = f", held by {holder(names[0])}" if names else ""
        yield Finding(
            code="namespace-finalizers",
            subject=case.ref,
            cause=f"deleted {age} ago, and objects in it wait for their finalizers{who}: {brief(holding.partition(': ')[2])}",
            controller="namespace-controller",
            next="it is gone when they are",
            remedy="see whether the controllers that own these finalizers run",
        )
        return
    failure = told("NamespaceDeletionContentFailure")
    remaining = told("NamespaceContentRemaining")
    pods = list(case.snapshot.objects("Pod", case.ref.name))
    if pods and not discovery:
        # The conditions say nothing of other content while there are pods, which go first.
        waiting = some(sorted(pod["metadata"]["name"] for pod in pods))
        yield Finding(
            code="namespace-pods",
            subject=case.ref,
            cause=f"deleted {age} ago, and waits for its {count(len(pods), 'pod')} {waiting}",
            controller="namespace-controller",
            next="it deletes everything else when the pods are gone",
            weight=Weight.CONSEQUENCE,
        )
    elif failure and not discovery:
        yield Finding(
            code="namespace-content-failure",
            subject=case.ref,
            cause=f"deleted {age} ago, but its content cannot be deleted: {brief(failure)}",
            controller="namespace-controller",
            next="it tries again, with a growing delay",
            remedy="remove what refuses the deletion: a policy, a webhook, or missing rights of the namespace-controller",
        )
    elif remaining and not discovery:
        yield Finding(
            code="namespace-content",
            subject=case.ref,
            cause=f"deleted {age} ago, and still has content: {brief(remaining.partition(': ')[2] or remaining)}",
            controller="namespace-controller",
            next="it deletes what is left, and looks again",
            weight=Weight.WAITS,
        )
    elif not discovery:
        held = case.spec.get("finalizers") or case.meta.get("finalizers") or ()
        others = [each for each in held if each != "kubernetes"]
        cause = (
            f"waits for the finalizer {some(others)} of {holder(others[0])}"
            if others
            else f"the namespace-controller has not emptied it for {age}"
        )
        yield Finding(code="namespace", subject=case.ref, cause=cause, controller="namespace-controller")


@situation(ANY)
def namespace_ends(case: Case) -> Iterator[Finding]:
    """The namespace of an object is being deleted: nothing new is created in it."""
    if not case.ref.namespace:
        return
    namespace = case.snapshot.get("Namespace", "", case.ref.namespace)
    if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
        yield Finding(
            code="namespace-terminating",
            subject=case.ref,
            cause=f"its namespace {case.ref.namespace} is being deleted, and nothing new is created in it",
            controller="namespace-controller",
            weight=Weight.CONSEQUENCE if case.meta.get("deletionTimestamp") else Weight.ROOT,
        )
