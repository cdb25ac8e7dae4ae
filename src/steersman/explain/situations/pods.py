"""Pods that are not scheduled, and pods whose containers do not start, do not stay up, or are not ready."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from steersman.api.volume_binding import SELECTED_NODE
from steersman.explain.model import Case, Finding, Weight, message_of
from steersman.explain.owners import KUBELET, SCHEDULER
from steersman.explain.situations.devices import missing_claim
from steersman.explain.situations.placement import has_selected_labels, untolerated
from steersman.explain.situations.predicates import read_predicates
from steersman.explain.situations.registry import situation
from steersman.explain.words import at, brief, count, duration

ATTACHER = "persistentvolume-attach-detach-controller"
EPHEMERAL = "ephemeral-volume-controller"
MAX_BACK_OFF = timedelta(minutes=5)
"""The longest that a kubelet waits between two starts of a container."""
SLOW_PULL = timedelta(minutes=1)
"""A pod whose containers have not been started for this long is worth a word."""


def _is_terminating(case: Case) -> bool:
    return case.meta.get("deletionTimestamp") is not None


@situation("Pod")
def unschedulable(case: Case) -> Iterator[Finding]:
    """The pod is gated, or fits no node: the predicates that fail, and on how many nodes."""
    condition = case.condition("PodScheduled")
    if case.spec.get("nodeName") or condition.get("status") != "False" or _is_terminating(case):
        return
    if condition.get("reason") == "SchedulingGated":
        gates = ", ".join(gate.get("name", "") for gate in case.spec.get("schedulingGates") or ())
        yield Finding(
            code="scheduling-gate",
            subject=case.ref,
            cause=f"held back by the scheduling gate {gates}",
            controller="the controller that set the gate",
            remedy="remove the gate from spec.schedulingGates when its condition is met",
        )
        return
    message = str(condition.get("message", ""))
    foreign = re.search(r"PVC [^/ ]+/(\S+) was not created for pod", message)
    if foreign:
        yield Finding(
            code="foreign-claim",
            subject=case.ref,
            cause=f"PersistentVolumeClaim {foreign[1]} is not its own, and its ephemeral volume needs a claim of that name",
            controller=EPHEMERAL,
            next="the pod is scheduled when the controller has created the claim for it",
            remedy="rename the pod or its volume, or delete that claim if its data may go",
            weight=Weight.ROOT,
        )
        return
    if "unbound immediate PersistentVolumeClaims" in message or "persistentvolumeclaim" in message:
        yield _waits_for_volume(case, message)
        return
    code, cause, remedy = read_predicates(message, _taints(case))
    yield Finding(
        code=code,
        subject=case.ref,
        cause=cause,
        controller=SCHEDULER,
        next="the scheduler tries again when a node or a pod changes",
        remedy=remedy,
    )


def _waits_for_volume(case: Case, message: str) -> Finding:
    missing = re.search(r'persistentvolumeclaim "([^"]+)" not found', message)
    if missing:
        return Finding(
            code="missing-claim",
            subject=case.ref,
            cause=f"it mounts PersistentVolumeClaim {missing[1]}, which does not exist",
            controller=SCHEDULER,
            next="the scheduler tries again when the claim exists",
            remedy=f"create PersistentVolumeClaim {missing[1]}, or correct the name in the pod",
        )
    awaited = re.search(r'ephemeral volume controller to create the persistentvolumeclaim "([^"]+)"', message)
    failed = case.snapshot.events(case.document, "FailedBinding")
    if awaited and failed:
        reason = re.sub(r"^ephemeral volume \S+: (create PVC \S+: )?", "", message_of(failed[0]))
        return Finding(
            code="ephemeral-claim",
            subject=case.ref,
            cause=f"PersistentVolumeClaim {awaited[1]} of its ephemeral volume cannot be created: {brief(reason)}",
            controller=EPHEMERAL,
            next="the controller tries again, with a growing delay",
        )
    deleted = re.search(r'persistentvolumeclaim "([^"]+)" is being deleted', message)
    if deleted:
        return Finding(
            code="deleted-claim",
            subject=case.ref,
            cause=f"it mounts PersistentVolumeClaim {deleted[1]}, which is being deleted",
            controller=SCHEDULER,
            next="the scheduler tries again when the claim is gone and created anew",
            remedy=f"create the claim again when it is gone: kubectl get pvc {deleted[1]}{case.ref.namespace_flag}",
        )
    return _unbound_claims(case)


def _unbound_claims(case: Case) -> Finding:
    return Finding(
        code="unbound-claims",
        subject=case.ref,
        cause="not scheduled before its PersistentVolumeClaims are bound",
        controller=SCHEDULER,
        next="the scheduler goes on when the claims are bound",
        weight=Weight.CONSEQUENCE,
    )


def _taints(case: Case) -> str:
    """The taints that keep a pod from the nodes it selects. The scheduler's message does not name them since Kubernetes 1.34."""
    nodes = list(case.snapshot.objects("Node"))
    # The scheduler looks at taints first, also at those of nodes that the pod does not select.
    return untolerated(case.spec, filter(partial(has_selected_labels, case.spec), nodes)) or untolerated(
        case.spec, nodes
    )


@situation("Pod")
def no_scheduler(case: Case) -> Iterator[Finding]:
    """A pod that no scheduler has looked at: its schedulerName is wrong, or the scheduler does not run."""
    if case.spec.get("nodeName") or case.condition("PodScheduled") or _is_terminating(case):
        return
    name = case.spec.get("schedulerName", "default-scheduler")
    if _node_is_selected(case):
        yield _unbound_claims(case)
        return
    created = case.time(case.meta.get("creationTimestamp"))
    if created is None or case.now - created < timedelta(seconds=10) or missing_claim(case) is not None:
        return
    yield Finding(
        code="no-scheduler",
        subject=case.ref,
        cause=f"no scheduler has looked at it: {name} does not run, or does not see it",
        controller=name,
        remedy="start the scheduler, or correct schedulerName in the pod template",
    )


def _node_is_selected(case: Case) -> bool:
    """Whether the scheduler has a node for the pod, and waits for the claims that it selected this node for."""
    for volume in case.spec.get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if volume.get("ephemeral"):
            name = f"{case.ref.name}-{volume.get('name')}"
        claim = case.snapshot.get("PersistentVolumeClaim", case.ref.namespace, name) if name else None
        selected = ((claim or {}).get("metadata", {}).get("annotations") or {}).get(SELECTED_NODE)
        if claim is not None and selected and (claim.get("status") or {}).get("phase") != "Bound":
            return True
    return False


# -- containers -------------------------------------------------------------------------------


def _containers(case: Case) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The statuses of the containers, and whether they are init containers."""
    for status in case.status.get("initContainerStatuses") or ():
        yield status, True
    for status in case.status.get("containerStatuses") or ():
        yield status, False


def _label(name: str, init: bool) -> str:
    return f"init container {name}" if init else f"container {name}"


def _logs(case: Case, status: Mapping[str, Any], init: bool) -> str:
    """The command that shows the log of a container. kubectl takes the first one that is no init container, if none is named."""
    named = init or len(case.spec.get("containers") or ()) > 1
    container = f" -c {status.get('name')}" if named else ""
    return f"kubectl logs {case.ref.name}{case.ref.namespace_flag}{container}"


@situation("Pod")
def image_not_pulled(case: Case) -> Iterator[Finding]:
    """The image never comes: a wrong name or tag, or a registry that refuses."""
    for status, init in _containers(case):
        waiting = (status.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason", "")
        if reason not in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"):
            continue
        image = status.get("image") or _image(case, status.get("name", ""))
        detail = _pull_detail(case, str(waiting.get("message", "")))
        secret = _missing_pull_secret(case)
        cause = (
            f"the image {image} of {_label(status.get('name', ''), init)} cannot be pulled ({reason}){detail}"
        )
        yield Finding(
            code="image",
            subject=case.ref,
            cause=f"{cause}; its imagePullSecret {secret} does not exist" if secret else cause,
            controller=KUBELET,
            next=f"the kubelet tries again, up to {duration(MAX_BACK_OFF)} later each time",
            remedy=f"create Secret {secret}, or correct the imagePullSecrets"
            if secret
            else "correct the image name or tag, or the imagePullSecrets",
        )
        return


def _pull_detail(case: Case, message: str) -> str:
    if not message or message.startswith("Back-off"):
        events = case.snapshot.events(case.document, "Failed")
        message = next((message_of(each) for each in events if "pull" in message_of(each)), "")
    return f": {brief(message)}" if message else ""


def _missing_pull_secret(case: Case) -> str:
    """The imagePullSecrets that the kubelet has not found; empty if it has found all."""
    events = case.snapshot.events(case.document, "FailedToRetrieveImagePullSecret")
    named = re.search(r"image pull secrets \(([^)]+)\)", message_of(events[0])) if events else None
    return named[1] if named else ""


def _image(case: Case, name: str) -> str:
    for container in (*case.spec.get("initContainers", ()), *case.spec.get("containers", ())):
        if container.get("name") == name:
            return str(container.get("image", ""))
    return ""


@situation("Pod")
def crash_loop(case: Case) -> Iterator[Finding]:
    """A container that keeps ending: its exit code, or that it used too much memory."""
    if case.status.get("phase") in ("Failed", "Succeeded"):
        # It has been restarted before, and is not any more.
        return
    for status, init in _containers(case):
        state = status.get("state") or {}
        waiting = state.get("waiting") or {}
        ended = (status.get("lastState") or {}).get("terminated") or state.get("terminated") or {}
        if waiting.get("reason") != "CrashLoopBackOff" and not (
            status.get("restartCount", 0) >= 2 and not status.get("ready") and ended.get("exitCode")
        ):
            continue
        label, restarts = _label(status.get("name", ""), init), status.get("restartCount", 0)
        if ended.get("reason") == "OOMKilled":
            cause = f"{label} is killed because it uses more memory than its limit (OOMKilled), {count(restarts, 'restart')} so far"
            code, remedy = "oom", "raise the memory limit of the container, or find its leak"
        else:
            how = f"exit code {ended['exitCode']}" if "exitCode" in ended else "an unknown exit code"
            cause = f"{label} keeps ending with {how} (CrashLoopBackOff), {count(restarts, 'restart')} so far"
            code, remedy = "crash-loop", f"read its log: {_logs(case, status, init)} --previous"
            if ended.get("exitCode") == 0:
                remedy = (
                    f"its program ends without an error: keep it in the foreground, or use a Job; {remedy}"
                )
        finished = case.time(ended.get("finishedAt"))
        wait = _back_off(restarts)
        due = (
            f" {at(finished + wait, case.now)}" if finished is not None and finished + wait > case.now else ""
        )
        yield Finding(
            code=code,
            subject=case.ref,
            cause=cause,
            controller=KUBELET,
            next=f"the kubelet starts it again{due}; the pause doubles each time, up to {duration(MAX_BACK_OFF)}",
            remedy=remedy,
        )
        return


def _back_off(restarts: int) -> timedelta:
    """How long a kubelet waits before a restart: 10 s, then twice as long each time, at most five minutes."""
    return min(timedelta(seconds=10 * 2 ** min(max(restarts - 1, 0), 10)), MAX_BACK_OFF)


@situation("Pod")
def config_missing(case: Case) -> Iterator[Finding]:
    """A ConfigMap, a Secret or a key of one that a container needs does not exist."""
    for status, init in _containers(case):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in (
            "CreateContainerConfigError",
            "CreateContainerError",
            "RunContainerError",
        ):
            yield Finding(
                code="container-config",
                subject=case.ref,
                cause=f"{_label(status.get('name', ''), init)} cannot be created: {brief(str(waiting.get('message', '')) or waiting['reason'])}",
                controller=KUBELET,
                next="the kubelet tries again every few seconds",
                remedy="create what is missing, or correct the reference in the pod template",
            )
            return
    started = any((status.get("state") or {}).get("running") for status, _ in _containers(case))
    if started or not case.spec.get("nodeName") or case.status.get("phase") not in (None, "Pending"):
        return
    for event in case.snapshot.events(
        case.document, "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"
    ):
        message = message_of(event)
        missing = re.search(r'(configmap|secret) "([^"]+)" not found', message)
        if missing:
            kind = {"configmap": "ConfigMap", "secret": "Secret"}[missing[1]]
            cause, code = f"{kind} {missing[2]}, which it mounts, does not exist", "missing-volume-source"
            remedy = f"create {kind} {missing[2]}, or mark the volume optional"
        elif "Multi-Attach error" in message or message.startswith("Waiting for detach"):
            # The words before Kubernetes 1.36, and since.
            named = re.search(r'for volume "([^"]+)" (.*)', message)
            volume, detail = (f"volume {named[1]}", named[2]) if named else ("volume", message)
            cause, code = f"its {volume} is still attached to another node: {brief(detail)}", "multi-attach"
            remedy = "wait until the old pod is gone; delete it with force if its node is lost"
        else:
            cause, code = f"its volume cannot be mounted: {brief(message)}", "mount"
            remedy = ""
            if event.get("reason") == "FailedCreatePodSandBox":
                cause, code = f"its sandbox cannot be created: {brief(message)}", "sandbox"
            elif event.get("reason") == "FailedAttachVolume":
                cause, code = f"its volume cannot be attached: {brief(message)}", "attach"
        attaches = event.get("reason") == "FailedAttachVolume"
        yield Finding(
            code=code,
            subject=case.ref,
            cause=cause,
            controller=ATTACHER if attaches else KUBELET,
            next="the volume is attached when the other node has let go of it"
            if code == "multi-attach"
            else f"{'the controller' if attaches else 'the kubelet'} tries again, every two minutes at the latest",
            remedy=remedy,
        )
        return


@situation("Pod")
def init_not_finished(case: Case) -> Iterator[Finding]:
    """The containers wait for an init container that runs and runs."""
    initialized = case.condition("Initialized")
    if initialized.get("status") != "False" or case.status.get("phase") != "Pending":
        return
    for status, init in _containers(case):
        running = (status.get("state") or {}).get("running")
        if init and running and not status.get("ready"):
            since = case.time(running.get("startedAt"))
            length = f" for {duration(case.now - since)}" if since is not None else ""
            total = len(case.spec.get("initContainers", ()))
            done = sum(bool(one.get("ready")) for one in case.status.get("initContainerStatuses") or ())
            yield Finding(
                code="init",
                subject=case.ref,
                cause=f"init container {status.get('name')} has been running{length} and does not end ({done} of {total} done)",
                controller=KUBELET,
                next="the other containers start when it ends with exit code 0",
                remedy=f"read its log: {_logs(case, status, init)}",
            )
            return


@situation("Pod")
def not_ready(case: Case) -> Iterator[Finding]:
    """The pod runs, and its readiness probe (or a readiness gate) fails."""
    ready = case.condition("Ready")
    if case.status.get("phase") != "Running" or ready.get("status") == "True" or _is_terminating(case):
        return
    conditions = {each.get("type"): each.get("status") for each in case.status.get("conditions") or ()}
    gates = [
        gate.get("conditionType", "")
        for gate in case.spec.get("readinessGates") or ()
        if conditions.get(gate.get("conditionType")) != "True"
    ]
    unready = [
        status
        for status, init in _containers(case)
        if not init and not status.get("ready") and (status.get("state") or {}).get("running")
    ]
    if gates and not unready:
        yield Finding(
            code="readiness-gate",
            subject=case.ref,
            cause=f"its readiness gate {', '.join(gates)} is not True",
            controller="the controller of the gate's condition",
        )
        return
    if not unready:
        return
    names = ", ".join(status.get("name", "") for status in unready)
    probed = any(
        container.get("readinessProbe") or container.get("startupProbe")
        for container in case.spec.get("containers", ())
        if container.get("name") in [status.get("name") for status in unready]
    )
    events = case.snapshot.events(case.document, "Unhealthy")
    said = f": {brief(message_of(events[0]))}" if events else ""
    what = "fails its readiness probe" if probed or events else "does not report ready"
    yield Finding(
        code="readiness",
        subject=case.ref,
        cause=f"container {names} runs but {what}{said}",
        controller=KUBELET,
        next="the kubelet probes it again; it gets no traffic until then",
        remedy=f"see what the probe asks for: kubectl describe pod {case.ref.name}{case.ref.namespace_flag}; "
        f"{_logs(case, unready[0], False)}",
    )


@situation("Pod")
def starting(case: Case) -> Iterator[Finding]:
    """The pod is scheduled, and its kubelet has not started its containers."""
    if (
        not case.spec.get("nodeName")
        or case.status.get("phase") not in (None, "", "Pending")
        or _is_terminating(case)
    ):
        return
    reasons = {
        ((status.get("state") or {}).get("waiting") or {}).get("reason") for status, _ in _containers(case)
    }
    if not reasons <= {None, "ContainerCreating", "PodInitializing"}:
        return
    scheduled = case.time(case.condition("PodScheduled").get("lastTransitionTime"))
    slow = scheduled is not None and case.now - scheduled > SLOW_PULL
    since = f" for {duration(case.now - scheduled)}" if scheduled is not None else ""
    yield Finding(
        code="starting",
        subject=case.ref,
        cause=f"its containers are being created on {case.spec['nodeName']}{since}",
        controller=KUBELET,
        next="the kubelet pulls images and mounts volumes, then starts them",
        weight=Weight.CONSEQUENCE if slow else Weight.WAITS,
    )


@situation("Pod")
def failed(case: Case) -> Iterator[Finding]:
    """The pod has failed, and is not started again."""
    if case.status.get("phase") != "Failed":
        return
    ended = [
        (status, init, (status.get("state") or {}).get("terminated") or {})
        for status, init in _containers(case)
    ]
    bad = next((each for each in ended if each[2].get("exitCode")), None)
    reason = case.status.get("reason") or (bad[2].get("reason") if bad else "")
    if case.status.get("reason"):
        said = case.status.get("message")
        cause = f"failed: {reason}" + (f", {brief(said)}" if said else "")
    elif bad:
        label = _label(bad[0].get("name", ""), bad[1])
        cause = f"{label} ended with exit code {bad[2]['exitCode']} ({reason or 'Error'})"
    else:
        cause = "failed without a reason"
    yield Finding(
        code="failed",
        subject=case.ref,
        cause=cause,
        controller=KUBELET,
        next=""
        if case.meta.get("ownerReferences")
        else "nothing: a pod that has failed is not started again",
        weight=Weight.CONSEQUENCE if case.meta.get("ownerReferences") else Weight.BLOCKED,
        remedy=f"read its log: {_logs(case, bad[0] if bad else {}, bool(bad and bad[1]))}",
    )
