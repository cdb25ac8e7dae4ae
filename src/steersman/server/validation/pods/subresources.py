"""Validation of a pod's subresources: ephemeralcontainers, resize and status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.go_quote import quote
from steersman.api.quota.compute import qos_class
from steersman.server.validation import addresses, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, format_diff, go_slice, go_struct
from steersman.server.validation.pods.annotations import (
    MIRROR,
    validate_annotations_update,
    validate_pod_annotations,
)
from steersman.server.validation.pods.pod import validate_pod_change

_RESIZABLE = ("cpu", "memory")


def validate_ephemeral_containers_update(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """Ephemeral containers may be added, not changed or removed."""
    validate_pod_change(errors, new, old)
    if MIRROR in old.metadata.annotations:
        errors[:] = []
        errors.forbidden("[]", "static pods do not support ephemeral containers")
        return
    now = {container.name: container for container in new.spec.ephemeralContainers}
    path = "spec.ephemeralContainers"
    for before in old.spec.ephemeralContainers:
        after = now.get(before.name)
        which = f"existing ephemeral containers {quote(before.name)}"
        if after is None:
            errors.forbidden(path, f"{which} may not be removed\n")
        elif after != before:
            errors.forbidden(path, f"{which} may not be changed\n{format_diff(before, after)}")


def validate_resize(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """A resize may change CPU and memory only."""
    validate_pod_change(errors, new, old)
    unsized = "static" if MIRROR in old.metadata.annotations else None
    if unsized is None and old.spec.os is not None and old.spec.os.name == "windows":
        unsized = "windows"
    if unsized is not None:
        errors[:] = []
        errors.forbidden("[]", f"{unsized} pods cannot be resized")
        return
    # Defaulting has refused unparseable quantities.
    if (old.status.qosClass or qos_class(old.spec)) != qos_class(new.spec):
        errors.invalid("spec", new.status.qosClass, "Pod QOS Class may not change as a result of resizing")
    running = (status for status in old.status.containerStatuses if status.state.running is not None)
    if any(status.resources is None for status in list(running)[:1]):
        errors.forbidden("spec", "Pod running on node without support for resize")
    spec = replace(new.spec, resources=_with_pod_resources_of(errors, new.spec.resources, old.spec.resources))
    if old.status.nodeAllocatableResourceClaimStatuses:
        errors.forbidden("spec", "pods with node allocatable resource claims cannot be resized")
    if not _validate_container_order(errors, new.spec, old.spec):
        return
    for name, new_value, old_value in (
        ("initContainers", new.spec.initContainers, old.spec.initContainers),
        ("containers", new.spec.containers, old.spec.containers),
    ):
        for i, (now, was) in enumerate(zip(new_value, old_value, strict=True)):
            _validate_resources_kept(
                errors, f"spec.{name}[{i}].resources", now.resources, was.resources, "resource"
            )
    spec = replace(
        spec,
        containers=_with_container_resources_of(errors, new.spec, old.spec),
        initContainers=_with_init_container_resources_of(errors, new.spec, old.spec),
    )
    if not errors and spec != old.spec:
        errors.forbidden("spec", "only cpu and memory resources are mutable")


def _with_pod_resources_of(
    errors: FieldErrors, new: v1.ResourceRequirements | None, old: v1.ResourceRequirements | None
) -> v1.ResourceRequirements | None:
    """The new pod-level resources with the old CPU and memory."""
    if not any(
        requirements is not None and (requirements.requests or requirements.limits)
        for requirements in (new, old)
    ):
        return new
    path = "spec.resources"
    if new is None:
        errors.forbidden(path, "pod-level resources cannot be removed")
        return new
    if old is not None:
        _validate_resources_kept(errors, path, new, old, "pod-level resource")
    munged = _restore_resizable(new, old or v1.ResourceRequirements())
    if munged != (old or v1.ResourceRequirements()):
        errors.forbidden("spec", "only cpu and memory resources are mutable at pod-level")
    return old if munged == old else munged


def _validate_resources_kept(
    errors: FieldErrors, path: str, new: v1.ResourceRequirements, old: v1.ResourceRequirements, subject: str
) -> None:
    for name, now, was in (("requests", new.requests, old.requests), ("limits", new.limits, old.limits)):
        if any(resource not in now for resource in was):
            errors.forbidden(f"{path}.{name}", f"{subject} {name} cannot be removed")


def _validate_container_order(errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec) -> bool:
    before = len(errors)
    for name, now, was in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.initContainers, old.initContainers),
    ):
        if len(now) != len(was):
            errors.forbidden(f"spec.{name}", f"{name} may not be added or removed on resize")
            continue
        for i, (after, container) in enumerate(zip(now, was, strict=True)):
            if after.name != container.name:
                at = f"spec.{name}[{i}].name"
                errors.forbidden(at, f"{name} may not be renamed or reordered on resize")
    return len(errors) == before


def _with_container_resources_of(
    errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec
) -> tuple[v1.Container, ...]:
    """The new containers with the old CPU and memory."""
    munged = tuple(map(_with_resources_of, new.containers, old.containers))
    for now, was in zip(munged, old.containers, strict=True):
        if now != was:
            errors.forbidden("spec", "only cpu and memory resources are mutable")
    return munged


def _with_init_container_resources_of(
    errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec
) -> tuple[v1.Container, ...]:
    munged = tuple(map(_with_resources_of, new.initContainers, old.initContainers))
    for i, (after, now, was) in enumerate(zip(new.initContainers, munged, old.initContainers, strict=True)):
        at = f"spec.initContainers[{i}]"
        if now != was:
            errors.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
        if after != was and after.restartPolicy != "Always":
            for policy in after.resizePolicy:
                if policy.restartPolicy == "RestartContainer":
                    restarted = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                    errors.forbidden(at, restarted)
    return munged


def _with_resources_of(new: v1.Container, old: v1.Container) -> v1.Container:
    """The new container with the old CPU and memory."""
    return replace(new, resources=_restore_resizable(new.resources, old.resources))


def _restore_resizable(new: v1.ResourceRequirements, old: v1.ResourceRequirements) -> v1.ResourceRequirements:
    # Upstream drops claims here too, so a container with claims cannot be resized.
    return v1.ResourceRequirements(
        limits=_restore_quantities(new.limits, old.limits),
        requests=_restore_quantities(new.requests, old.requests),
    )


def _restore_quantities(new: Mapping[str, Amount], old: Mapping[str, Amount]) -> dict[str, Amount]:
    quantities = {name: amount for name, amount in new.items() if name not in _RESIZABLE}
    return quantities | {name: old[name] for name in _RESIZABLE if name in old}


# -- status ---------------------------------------------------------------------------------

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def validate_pod_status(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.metadata.annotations is not old.metadata.annotations:
        validate_annotations_update(errors, new.metadata.annotations, old.metadata.annotations)
        validate_pod_annotations(errors, "metadata.annotations", new.metadata.annotations, new.spec)
    now, was = new.status, old.status
    for i, condition in enumerate(now.conditions):
        if condition.observedGeneration < 0:
            at = f"status.conditions[{i}].observedGeneration"
            errors.invalid(at, condition.observedGeneration, "must be a non-negative integer")
        for detail in (
            names.qualified_name(condition.type) if condition.type not in _SYSTEM_CONDITIONS else ()
        ):
            errors.invalid(f"status.conditions[{i}].Type", condition.type, detail)
    if now.nominatedNodeName != was.nominatedNodeName and now.nominatedNodeName:
        at = "status.nominatedNodeName"
        errors.invalid_each(at, now.nominatedNodeName, names.dns1123_subdomain(now.nominatedNodeName))
        if old.spec.nodeName:
            errors.forbidden(at, "may not be set on pods that are already bound to a node")
    if now.observedGeneration < 0:
        errors.invalid("status.observedGeneration", now.observedGeneration, "must be a non-negative integer")
    errors.immutable("status.qosClass", now.qosClass, was.qosClass)
    _validate_state_transitions(errors, new, old)
    _validate_addresses(errors, now, was)


def _validate_state_transitions(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """A terminated container stays so, unless a restart policy lets it start again."""
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
            if member is None or not _is_restartable(member, spec, ended.exitCode, name):
                errors.forbidden(
                    f"status.{name}[{i}].state", "may not be transitioned to non-terminated state"
                )


def _is_restartable(
    container: v1.Container | v1.EphemeralContainer, spec: v1.PodSpec, exit_code: int, statuses: str
) -> bool:
    if statuses == "ephemeralContainerStatuses":
        return False
    if _restarts_all_containers(spec):
        return True
    if container.restartPolicy is not None:
        for rule in container.restartPolicyRules:
            codes = rule.exitCodes
            if codes is not None and (exit_code in codes.values) is (codes.operator == "In"):
                return True
        policy = container.restartPolicy
    else:
        policy = spec.restartPolicy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _restarts_all_containers(spec: v1.PodSpec) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.initContainers)
        for rule in container.restartPolicyRules
    )


def _validate_addresses(errors: FieldErrors, now: v1.PodStatus, was: v1.PodStatus) -> None:
    if now.podIPs != was.podIPs:
        _validate_ips(
            errors,
            "status.podIPs",
            [address.ip for address in now.podIPs],
            [address.ip for address in was.podIPs],
        )
    hosts = [address.ip for address in now.hostIPs]
    if hosts:
        if now.hostIP != hosts[0]:
            errors.invalid("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`")
        existing = [address.ip for address in was.hostIPs]
        if hosts != existing:
            _validate_ips(errors, "status.hostIPs", hosts, existing)


def _validate_ips(errors: FieldErrors, path: str, ips: list[str], existing: list[str]) -> None:
    for i, ip in enumerate(ips):
        addresses.validate_ip(errors, f"{path}[{i}]", ip, existing)
    if len(ips) > 1 and not addresses.one_per_family(ips):
        shown = go_slice(go_struct(IP=ip) for ip in ips)
        errors.invalid(path, shown, "may specify no more than one IP for each IP family")
