"""What may be said of how a pod is."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, go_slice, go_struct
from steersman.server.validation.pods import annotations as notes

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def status(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.metadata.annotations is not old.metadata.annotations:
        notes.updated(errors, new.metadata.annotations, old.metadata.annotations)
        notes.specific(errors, "metadata.annotations", new.metadata.annotations, new.spec)
    now, was = new.status, old.status
    for i, condition in enumerate(now.conditions):
        if condition.observedGeneration < 0:
            at = f"status.conditions[{i}].observedGeneration"
            errors.invalid(at, condition.observedGeneration, "must be a non-negative integer")
        for why in names.qualified(condition.type) if condition.type not in _SYSTEM_CONDITIONS else ():
            errors.invalid(f"status.conditions[{i}].Type", condition.type, why)
    if now.nominatedNodeName != was.nominatedNodeName and now.nominatedNodeName:
        at = "status.nominatedNodeName"
        errors.invalid_each(at, now.nominatedNodeName, names.subdomain(now.nominatedNodeName))
        if old.spec.nodeName:
            errors.forbidden(at, "may not be set on pods that are already bound to a node")
    if now.observedGeneration < 0:
        errors.invalid("status.observedGeneration", now.observedGeneration, "must be a non-negative integer")
    errors.immutable("status.qosClass", now.qosClass, was.qosClass)
    _transitions(errors, new, old)
    _addresses(errors, now, was)


def _transitions(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """What has ended stays so, where nothing says it is to be started again."""
    spec = old.spec
    for name, members in (
        ("containerStatuses", spec.containers),
        ("initContainerStatuses", spec.initContainers),
        ("ephemeralContainerStatuses", spec.ephemeralContainers),
    ):
        was = getattr(old.status, name)
        now = {status.name: status for status in getattr(new.status, name)} if was else {}
        for i, before in enumerate(was):
            ended = before.state.terminated
            after = now.get(before.name)
            if ended is None or after is None or after.state.terminated is not None:
                continue
            member = next((member for member in members if member.name == before.name), None)
            if member is None or not _restarts(member, spec, ended.exitCode, name):
                errors.forbidden(
                    f"status.{name}[{i}].state", "may not be transitioned to non-terminated state"
                )


def _restarts(container: Any, spec: v1.PodSpec, code: int, sort: str) -> bool:
    if sort == "ephemeralContainerStatuses":
        return False
    if _everything_restarts(spec):
        return True
    if container.restartPolicy is not None:
        for rule in container.restartPolicyRules:
            codes = rule.exitCodes
            if codes is not None and (code in codes.values) is (codes.operator == "In"):
                return True
        policy = container.restartPolicy
    else:
        policy = spec.restartPolicy
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _everything_restarts(spec: v1.PodSpec) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.initContainers)
        for rule in container.restartPolicyRules
    )


def _addresses(errors: FieldErrors, now: v1.PodStatus, was: v1.PodStatus) -> None:
    if now.podIPs != was.podIPs:
        _each_address(errors, "status.podIPs", [one.ip for one in now.podIPs], [one.ip for one in was.podIPs])
    hosts = [one.ip for one in now.hostIPs]
    if hosts:
        if now.hostIP != hosts[0]:
            errors.invalid("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`")
        known = [one.ip for one in was.hostIPs]
        if hosts != known:
            _each_address(errors, "status.hostIPs", hosts, known)


def _each_address(errors: FieldErrors, path: str, ips: list[str], known: list[str]) -> None:
    for i, ip in enumerate(ips):
        addresses.valid(errors, f"{path}[{i}]", ip, known)
    if len(ips) > 1 and not addresses.one_of_each_family(ips):
        shown = go_slice(go_struct(IP=ip) for ip in ips)
        errors.invalid(path, shown, "may specify no more than one IP for each IP family")
