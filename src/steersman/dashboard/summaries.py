"""Summaries of objects: a few fields that an overview shows, from a plain document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from steersman.explain.model import Document
from steersman.explain.situations.workloads import is_ready

State: TypeAlias = Literal["ok", "waits", "bad", "done", "gone"]
"""As it should be; on its way; in need of a person; has done its work; being deleted."""

OK: State = "ok"
WAITS: State = "waits"
BAD: State = "bad"
DONE: State = "done"
GONE: State = "gone"

SIMULATED = "sim://"
"""The prefix of the providerID of simulated nodes."""
TAKEN_OVER = "sim.steersman.dev/simulated"
"""An annotation of simulated nodes whose providerID is that of a real machine: those of a snapshot."""
_BROKEN = (
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
)
"""Reasons of waiting containers that need a person."""


class Summary(msgspec.Struct, frozen=True):
    """The summary of an object, in a few fields. Fields that its kind does not have are left out."""

    id: str
    """The uid."""
    kind: str
    group: str
    version: str
    namespace: str
    name: str
    owner: str
    """The uid of its controller; empty if it has none."""
    state: State
    status: str
    """In a few words, as kubectl has them where it has any: ``CrashLoopBackOff``, ``2/3 ready``."""
    node: str
    created: str
    ready: int | UnsetType = UNSET
    wanted: int | UnsetType = UNSET
    cordoned: bool | UnsetType = UNSET
    simulated: bool | UnsetType = UNSET
    taints: tuple[str, ...] | UnsetType = UNSET
    """``key:Effect``."""
    pods: int | UnsetType = UNSET
    """Pods of a node that have not ended."""
    restarts: int | UnsetType = UNSET


class Told(NamedTuple):
    """The state of an object, in a word and in words."""

    state: State
    status: str
    ready: int | UnsetType = UNSET
    wanted: int | UnsetType = UNSET


def summarize(document: Document) -> Summary:
    """The summary of an object. One with odd fields is summarized as such."""
    meta: Mapping[str, Any] = _map(document.get("metadata"))
    spec, kind = _map(document.get("spec")), str(document.get("kind", ""))
    group, _, version = str(document.get("apiVersion", "v1")).rpartition("/")
    try:
        told = _KINDS.get(kind, _any)(document)
    except (AttributeError, KeyError, TypeError, ValueError):
        told = Told(BAD, "fields that cannot be read")
    if meta.get("deletionTimestamp"):
        told = told._replace(state=GONE, status="Terminating")
    if meta.get("creationTimestamp") is None and not meta.get("uid"):
        told = Told(BAD, "cannot be read")
    extra: dict[str, Any] = {}
    if kind == "Node":
        extra = {
            "cordoned": bool(spec.get("unschedulable")),
            "simulated": str(spec.get("providerID", "")).startswith(SIMULATED)
            or TAKEN_OVER in _map(meta.get("annotations")),
            "taints": tuple(f"{each.get('key')}:{each.get('effect')}" for each in _maps(spec.get("taints"))),
            "pods": 0,
        }
    elif kind == "Pod":
        extra = {"restarts": _restarts(document)}
    return Summary(
        id=str(meta.get("uid", "")),
        kind=kind,
        group=group,
        version=version,
        namespace=str(meta.get("namespace", "")),
        name=str(meta.get("name", "")),
        owner=controller_uid(meta),
        state=told.state,
        status=told.status,
        node=str(spec.get("nodeName", "")) if kind == "Pod" else "",
        created=str(meta.get("creationTimestamp") or ""),
        ready=told.ready,
        wanted=told.wanted,
        **extra,
    )


def controller_uid(meta: Mapping[str, Any]) -> str:
    """The uid of the object that controls another one, from its metadata; empty if there is none."""
    for owner in _maps(meta.get("ownerReferences")):
        if owner.get("controller"):
            return str(owner.get("uid", ""))
    return ""


def pod_has_ended(document: Document) -> bool:
    """Whether a pod has come to its end, so that its node has room for others."""
    return _map(document.get("status")).get("phase") in ("Succeeded", "Failed")


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: object) -> Iterable[Mapping[str, Any]]:
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else ()


def _parts(document: Document) -> tuple[Mapping[str, Any], Mapping[str, Any], bool]:
    """The spec, the status, and whether the controller has observed the latest spec."""
    spec, status, meta = (_map(document.get(each)) for each in ("spec", "status", "metadata"))
    return spec, status, status.get("observedGeneration", 0) >= meta.get("generation", 0)


def _condition(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    return next((each for each in _maps(status.get("conditions")) if each.get("type") == type_), {})


# -- workloads --------------------------------------------------------------------------------


def _replicas(document: Document) -> Told:
    spec, status, observed = _parts(document)
    wanted, ready = int(spec.get("replicas", 1)), int(status.get("readyReplicas", 0))
    updated, total = int(status.get("updatedReplicas", wanted)), int(status.get("replicas", ready))
    failed = _condition(status, "ReplicaFailure").get("status") == "True"
    stuck = _condition(status, "Progressing").get("status") == "False"
    if observed and ready == wanted == total and updated >= wanted and not failed:
        return Told(OK, f"{ready}/{wanted} ready" if wanted else "scaled to 0", ready, wanted)
    words = f"{ready}/{wanted} ready"
    if updated < wanted:
        words += f", {updated} up to date"
    if spec.get("paused"):
        words += ", paused"
    return Told(BAD if failed or stuck else WAITS, words, ready, wanted)


def _replicaset(document: Document) -> Told:
    told = _replicas(document)
    return told._replace(state=DONE) if told.wanted == 0 and told.state == OK else told


def _statefulset(document: Document) -> Told:
    spec, status, _ = _parts(document)
    told = _replicas(document)
    if told.state == OK and status.get("updateRevision", "") != status.get("currentRevision", ""):
        strategy = _map(spec.get("updateStrategy"))
        if strategy.get("type") != "OnDelete" and not _map(strategy.get("rollingUpdate")).get("partition"):
            return told._replace(state=WAITS, status=f"{told.status}, updating")
    return told


def _daemonset(document: Document) -> Told:
    _, status, observed = _parts(document)
    wanted, ready = int(status.get("desiredNumberScheduled", 0)), int(status.get("numberReady", 0))
    updated = int(status.get("updatedNumberScheduled", 0))
    if observed and wanted == ready == updated and wanted:
        return Told(OK, f"{ready}/{wanted} ready", ready, wanted)
    words = f"{ready}/{wanted} ready" if wanted else "no node fits" if observed else "0/0 ready"
    return Told(WAITS, words, ready, wanted)


def _job(document: Document) -> Told:
    spec, status, _ = _parts(document)
    wanted = int(spec.get("completions") or 1)
    done, active, failed = (int(status.get(each, 0)) for each in ("succeeded", "active", "failed"))
    if _condition(status, "Complete").get("status") == "True":
        return Told(DONE, "Complete", done, wanted)
    ended = _condition(status, "Failed")
    if ended.get("status") == "True":
        return Told(BAD, str(ended.get("reason") or "Failed"), done, wanted)
    if spec.get("suspend"):
        return Told(WAITS, "suspended", done, wanted)
    words = f"{done}/{wanted} completed, {active} active" + (f", {failed} failed" if failed else "")
    return Told(OK if active and not failed else WAITS, words, done, wanted)


def _cronjob(document: Document) -> Told:
    spec, status, _ = _parts(document)
    active = len(list(_maps(status.get("active"))))
    if spec.get("suspend"):
        return Told(OK, "suspended")
    return Told(OK, f"{spec.get('schedule', '')}{f', {active} active' if active else ''}")


# -- pods and nodes ---------------------------------------------------------------------------


def _pod(document: Document) -> Told:
    spec, status, _ = _parts(document)
    containers = len(list(_maps(spec.get("containers"))))
    statuses = list(_maps(status.get("containerStatuses")))
    ready = sum(1 for each in statuses if each.get("ready"))
    phase = str(status.get("phase") or "Pending")
    reason = str(status.get("reason") or "")
    if phase == "Succeeded":
        return Told(DONE, "Completed", ready, containers)
    if phase == "Failed":
        return Told(BAD, reason or _terminated(statuses) or "Failed", ready, containers)
    if is_ready(document):
        return Told(OK, "Running", ready, containers)
    init = _waiting(_maps(status.get("initContainerStatuses")))
    waiting = f"Init:{init}" if init else _waiting(statuses)
    if waiting:
        return Told(BAD if waiting.removeprefix("Init:") in _BROKEN else WAITS, waiting, ready, containers)
    if _condition(status, "PodScheduled").get("reason") == "Unschedulable":
        return Told(WAITS, "Unschedulable", ready, containers)
    if _condition(status, "PodScheduled").get("reason") == "SchedulingGated":
        return Told(WAITS, "SchedulingGated", ready, containers)
    ended = _terminated(statuses)
    words = reason or ended or (f"{phase}, not ready" if phase == "Running" else phase)
    return Told(BAD if reason or ended not in ("", "Completed") else WAITS, words, ready, containers)


def _waiting(statuses: Iterable[Mapping[str, Any]]) -> str:
    """The reason for which a container waits."""
    for each in statuses:
        waiting = _map(_map(each.get("state")).get("waiting"))
        if waiting.get("reason"):
            return str(waiting["reason"])
    return ""


def _terminated(statuses: Iterable[Mapping[str, Any]]) -> str:
    """The reason for which a container has ended."""
    for each in statuses:
        ended = _map(_map(each.get("state")).get("terminated"))
        if ended:
            return str(ended.get("reason") or f"ExitCode:{ended.get('exitCode')}")
    return ""


def _restarts(document: Document) -> int:
    statuses = _map(document.get("status")).get("containerStatuses")
    counts = (each.get("restartCount", 0) for each in _maps(statuses))
    return sum(count for count in counts if isinstance(count, int))


def _node(document: Document) -> Told:
    spec, status, _ = _parts(document)
    ready = _condition(status, "Ready").get("status")
    words = {"True": "Ready", "False": "NotReady"}.get(str(ready), "NotReady, silent")
    if spec.get("unschedulable"):
        return Told(WAITS if ready == "True" else BAD, f"{words}, cordoned")
    return Told(OK if ready == "True" else BAD, words)


# -- others -----------------------------------------------------------------------------------


def _service(document: Document) -> Told:
    spec, status, _ = _parts(document)
    type_ = str(spec.get("type") or "ClusterIP")
    if type_ == "LoadBalancer" and not _map(status.get("loadBalancer")).get("ingress"):
        return Told(WAITS, "LoadBalancer, no address yet")
    return Told(OK, type_)


def _claim(document: Document) -> Told:
    phase = str(_map(document.get("status")).get("phase") or "Pending")
    return Told(OK if phase == "Bound" else BAD if phase == "Lost" else WAITS, phase)


def _autoscaler(document: Document) -> Told:
    spec, status, _ = _parts(document)
    current, wanted = int(status.get("currentReplicas", 0)), int(status.get("desiredReplicas", 0))
    limits = f"{spec.get('minReplicas', 1)} to {spec.get('maxReplicas')}"
    for type_ in ("AbleToScale", "ScalingActive"):
        condition = _condition(status, type_)
        if condition.get("status") == "False":
            return Told(BAD, str(condition.get("reason") or f"not {type_}"))
    active = _condition(status, "ScalingActive").get("status") == "True"
    words = f"{current} now, {wanted} desired, {limits}"
    return Told(OK if active and current == wanted else WAITS, words)


def _budget(document: Document) -> Told:
    _, status, _ = _parts(document)
    allowed, pods = int(status.get("disruptionsAllowed", 0)), int(status.get("expectedPods", 0))
    words = f"{allowed} of {pods} pods may be evicted"
    return Told(OK if allowed or not pods else WAITS, words)


def _namespace(document: Document) -> Told:
    phase = str(_map(document.get("status")).get("phase") or "Active")
    return Told(OK if phase == "Active" else GONE, phase)


def _any(document: Document) -> Told:
    _, status, _ = _parts(document)
    ready = _condition(status, "Ready") or _condition(status, "Available")
    if ready and ready.get("status") != "True":
        return Told(WAITS, str(ready.get("reason") or "not ready"))
    return Told(OK, str(status.get("phase") or ("Ready" if ready else "")))


_KINDS: dict[str, Callable[[Document], Told]] = {
    "Deployment": _replicas,
    "ReplicaSet": _replicaset,
    "ReplicationController": _replicas,
    "StatefulSet": _statefulset,
    "DaemonSet": _daemonset,
    "Job": _job,
    "CronJob": _cronjob,
    "Pod": _pod,
    "Node": _node,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "HorizontalPodAutoscaler": _autoscaler,
    "PodDisruptionBudget": _budget,
    "Namespace": _namespace,
}
