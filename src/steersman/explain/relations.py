"""Relations between objects: what to look at next, from an object towards its causes, and what each wants and has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

from steersman.explain.model import Case, Document, Snapshot, State, ref_of, selects
from steersman.explain.situations.devices import claim_users
from steersman.explain.situations.network import backends, listed_endpoints, selected
from steersman.explain.situations.storage import claim_pods
from steersman.explain.situations.workloads import is_ready
from steersman.explain.words import count

Edge: TypeAlias = tuple[str, Document]
"""How an object belongs to another, and the object."""
MAX_PODS = 200
"""Pods of one owner that are looked at."""


def dependants(case: Case) -> Iterator[Edge]:
    """The objects that the state of an object follows from; only the first of them where its fields cannot be read."""
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        yield from _EDGES.get(case.ref.kind, _none)(case)


def owner(snapshot: Snapshot, document: Document) -> Document | None:
    """The object that controls another one."""
    meta = document.get("metadata", {})
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            found = snapshot.get(
                reference.get("kind", ""), meta.get("namespace", ""), reference.get("name", "")
            )
            if found is not None and found["metadata"].get("uid") == reference.get("uid"):
                return found
    return None


def _none(case: Case) -> Iterator[Edge]:
    return iter(())


def _replicasets(case: Case) -> Iterator[Edge]:
    """The ReplicaSets of a Deployment with pods, and its newest."""
    sets = case.snapshot.owned(case.document, "ReplicaSet")
    newest = max(sets, key=_revision, default=None)
    for each in sets:
        if each is newest or each.get("spec", {}).get("replicas") or each.get("status", {}).get("replicas"):
            yield "owns", each


def _revision(document: Document) -> int:
    text = (document["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision", "")
    return int(text) if text.isdecimal() else 0


def _unwell_pods(case: Case) -> Iterator[Edge]:
    pods = [pod for pod in case.snapshot.owned(case.document, "Pod") if not pod_is_well(pod)]
    for pod in pods[:MAX_PODS]:
        yield "owns", pod


def pod_is_well(pod: Document) -> bool:
    """Whether a pod is ready, or has done its work."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return is_ready(pod) or (pod.get("status") or {}).get("phase") == "Succeeded"


def _job_pods(case: Case) -> Iterator[Edge]:
    pods = [pod for pod in case.snapshot.owned(case.document, "Pod") if not pod_is_well(pod)]
    # The latest pod tells best why the Job does not end.
    pods.sort(key=lambda pod: pod["metadata"].get("creationTimestamp") or "", reverse=True)
    for pod in pods[:MAX_PODS]:
        yield "owns", pod


def _jobs(case: Case) -> Iterator[Edge]:
    active = {each.get("name") for each in case.status.get("active") or ()}
    jobs = case.snapshot.owned(case.document, "Job")
    newest = max(jobs, key=lambda job: job["metadata"].get("creationTimestamp") or "", default=None)
    for job in jobs:
        if job is newest or job["metadata"]["name"] in active:
            yield "owns", job


def _pod_needs(case: Case) -> Iterator[Edge]:
    for volume in case.spec.get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if volume.get("ephemeral"):
            name = f"{case.ref.name}-{volume.get('name')}"
        claim = case.snapshot.get("PersistentVolumeClaim", case.ref.namespace, name) if name else None
        if claim is not None and (claim.get("status") or {}).get("phase") != "Bound":
            yield "mounts", claim
    node = case.snapshot.get("Node", "", case.spec.get("nodeName", ""))
    if node is not None and not pod_is_well(case.document) and not is_ready(node):
        yield "runs on", node


def _claim_volume(case: Case) -> Iterator[Edge]:
    volume = case.snapshot.get("PersistentVolume", "", case.spec.get("volumeName", ""))
    if volume is not None:
        yield "bound to", volume
        return
    for pod in claim_pods(case):
        if not (pod.get("spec") or {}).get("nodeName"):
            yield "used by", pod


def _service_pods(case: Case) -> Iterator[Edge]:
    pods = selected(case)
    if pods and not any(map(is_ready, pods)):
        for pod in pods[:MAX_PODS]:
            yield "selects", pod


def _scale_target(case: Case) -> Iterator[Edge]:
    target = case.spec.get("scaleTargetRef") or {}
    found = case.snapshot.get(target.get("kind", ""), case.ref.namespace, target.get("name", ""))
    if found is not None:
        yield "scales", found


def _budget_pods(case: Case) -> Iterator[Edge]:
    for pod in case.snapshot.objects("Pod", case.ref.namespace):
        if selects(case.document, pod) and not pod_is_well(pod):
            yield "protects", pod


def _ingress_services(case: Case) -> Iterator[Edge]:
    for name in dict.fromkeys(str(backend.get("name")) for backend in backends(case)):
        if (service := case.snapshot.get("Service", case.ref.namespace, name)) is not None:
            yield "routes to", service


def _namespace_pods(case: Case) -> Iterator[Edge]:
    """The pods that keep a namespace from being deleted: they go before everything else."""
    if case.meta.get("deletionTimestamp"):
        for pod in islice(case.snapshot.objects("Pod", case.ref.name), MAX_PODS):
            yield "waits for", pod


def _custom_resources(case: Case) -> Iterator[Edge]:
    """The objects that keep their CustomResourceDefinition from being deleted."""
    kind = str((case.spec.get("names") or {}).get("kind"))
    if case.meta.get("deletionTimestamp"):
        for shown in (kind, f"{kind}.{case.spec.get('group')}"):
            for each in islice(case.snapshot.objects(shown), MAX_PODS):
                if each["metadata"].get("deletionTimestamp"):
                    yield "defines", each


def _claim_users(case: Case) -> Iterator[Edge]:
    for pod in claim_users(case):
        if not pod_is_well(pod):
            yield "used by", pod


_EDGES: dict[str, Callable[[Case], Iterator[Edge]]] = {
    "Deployment": _replicasets,
    "ReplicaSet": _unwell_pods,
    "ReplicationController": _unwell_pods,
    "StatefulSet": _unwell_pods,
    "DaemonSet": _unwell_pods,
    "Job": _job_pods,
    "CronJob": _jobs,
    "Pod": _pod_needs,
    "PersistentVolumeClaim": _claim_volume,
    "Service": _service_pods,
    "Ingress": _ingress_services,
    "HorizontalPodAutoscaler": _scale_target,
    "PodDisruptionBudget": _budget_pods,
    "Namespace": _namespace_pods,
    "CustomResourceDefinition": _custom_resources,
    "ResourceClaim": _claim_users,
}

# -- what is wanted, and what is ----------------------------------------------------------------


def state(case: Case, depth: int = 0, relation: str = "") -> State:
    """The wanted and the actual state of an object."""
    try:
        wants, has, well = _STATES.get(case.ref.kind, _any_state)(case)
    except (AttributeError, LookupError, TypeError, ValueError):
        wants, has, well = "to be as it should", "fields that cannot be read", False
    if case.meta.get("deletionTimestamp"):
        wants, well = "to be deleted", False
    return State(case.ref, wants, has, well, depth, relation)


Told: TypeAlias = tuple[str, str, bool]


def _replicas(case: Case) -> Told:
    wanted = case.spec.get("replicas", 1)
    ready = case.status.get("readyReplicas", 0)
    updated = case.status.get("updatedReplicas", wanted)
    observed = case.status.get("observedGeneration", 0) >= case.meta.get("generation", 0)
    has = f"{ready} of {wanted} ready"
    if updated < wanted:
        has += f", {updated} up to date"
    total = case.status.get("replicas", ready)
    well = observed and ready == wanted and updated >= wanted and total == wanted
    return count(wanted, "replica"), has, well


def _daemonset(case: Case) -> Told:
    wanted, ready = case.status.get("desiredNumberScheduled", 0), case.status.get("numberReady", 0)
    observed = case.status.get("observedGeneration", 0) >= case.meta.get("generation", 0)
    updated = case.status.get("updatedNumberScheduled", 0)
    return (
        "a pod on each node that fits",
        f"{ready} of {wanted} ready",
        observed and 0 < wanted == ready == updated,
    )


def _pod(case: Case) -> Told:
    phase = case.status.get("phase", "Pending")
    ready = is_ready(case.document)
    return "to run and be ready", f"{phase}{', ready' if ready else ''}", pod_is_well(case.document)


def _job(case: Case) -> Told:
    wanted = case.spec.get("completions", 1)
    done = case.status.get("succeeded", 0)
    complete = case.condition("Complete").get("status") == "True"
    active = case.status.get("active", 0)
    has = (
        "complete"
        if complete
        else f"{done} of {wanted} completed, {active} active, {case.status.get('failed', 0)} failed"
    )
    return count(wanted, "completion"), has, complete or bool(active and not case.status.get("failed"))


def _claim(case: Case) -> Told:
    phase = case.status.get("phase", "Pending")
    size = (case.spec.get("resources") or {}).get("requests", {}).get("storage", "")
    return f"a volume of {size}", phase, phase == "Bound"


def _node(case: Case) -> Told:
    ready = case.condition("Ready").get("status", "Unknown")
    cordoned = bool(case.spec.get("unschedulable"))
    words = {"True": "Ready", "False": "NotReady"}.get(ready, "NotReady (status Unknown)")
    return "to be ready", words + (", cordoned" if cordoned else ""), ready == "True" and not cordoned


def _service(case: Case) -> Told:
    if case.spec.get("type") == "ExternalName":
        return f"the name {case.spec.get('externalName')}", "it exists", True
    ready = sum(map(is_ready, selected(case)))
    well = ready > 0
    if case.spec.get("type") == "LoadBalancer" and not (case.status.get("loadBalancer") or {}).get("ingress"):
        return "an external address and endpoints", f"no address, {count(ready, 'ready pod')}", False
    if not case.spec.get("selector"):
        listed = listed_endpoints(case)
        well = listed > 0 or not case.snapshot.known("EndpointSlice")
        return "endpoints", f"no selector, {count(listed, 'endpoint')} listed", well
    return "endpoints", count(ready, "ready pod"), well


def _hpa(case: Case) -> Told:
    current, wanted = case.status.get("currentReplicas", 0), case.status.get("desiredReplicas", 0)
    low, high = case.spec.get("minReplicas", 1), case.spec.get("maxReplicas", 0)
    active = case.condition("ScalingActive").get("status") == "True"
    return f"{low} to {high} replicas", f"{current} now, {wanted} desired", active and current == wanted


def _cronjob(case: Case) -> Told:
    last = case.status.get("lastScheduleTime")
    has = f"the last was at {last}" if last else "there was none so far"
    return f"a Job at {case.spec.get('schedule')}", has, not case.spec.get("suspend")


def _budget(case: Case) -> Told:
    healthy, allowed = case.status.get("currentHealthy", 0), case.status.get("disruptionsAllowed", 0)
    return (
        f"at least {count(case.status.get('desiredHealthy', 0), 'healthy pod')}",
        f"{healthy} healthy, {count(allowed, 'eviction')} allowed",
        allowed > 0,
    )


def _quota(case: Case) -> Told:
    hard, used = case.status.get("hard") or {}, case.status.get("used") or {}
    wants = ", ".join(f"{name} {amount}" for name, amount in (case.spec.get("hard") or {}).items())
    return f"at most {wants}", ", ".join(f"{name} {used.get(name, 0)}" for name in hard) + " used", True


def _resource_claim(case: Case) -> Told:
    users, allocated = len(list(claim_users(case))), bool(case.status.get("allocation"))
    has = f"{'allocated' if allocated else 'not allocated'}, used by {count(users, 'pod')}"
    return "devices", has, allocated or not users


def _any_state(case: Case) -> Told:
    ready = case.condition("Ready") or case.condition("Available")
    if ready and ready.get("status") != "True":
        return "to be ready", str(ready.get("reason") or "not ready"), False
    return "", str(case.status.get("phase") or "it exists"), True


_STATES: dict[str, Callable[[Case], Told]] = {
    "Deployment": _replicas,
    "ReplicaSet": _replicas,
    "ReplicationController": _replicas,
    "StatefulSet": _replicas,
    "DaemonSet": _daemonset,
    "Pod": _pod,
    "Job": _job,
    "CronJob": _cronjob,
    "PersistentVolumeClaim": _claim,
    "Node": _node,
    "Service": _service,
    "HorizontalPodAutoscaler": _hpa,
    "PodDisruptionBudget": _budget,
    "ResourceQuota": _quota,
    "ResourceClaim": _resource_claim,
}


def names(document: Document) -> str:
    """The kind and name of a document, with its namespace."""
    kind, namespace, name = ref_of(document)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
