"""What is written of a pod by itself: containers to look into it with, and the sizes of those it has."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.go_quote import quote
from steersman.api.quota.compute import quality_of
from steersman.server.validation.diff import difference
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods.annotations import MIRROR
from steersman.server.validation.pods.pod import whole

_SIZED = ("cpu", "memory")


def ephemeral(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """Ephemeral containers come; they never change and never go."""
    whole(errors, new, old)
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
            errors.forbidden(path, f"{which} may not be changed\n{difference(before, after)}")


def resize(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """A pod gets more or less processor and memory, and stays what it is in all else."""
    whole(errors, new, old)
    unsized = "static" if MIRROR in old.metadata.annotations else None
    if unsized is None and old.spec.os is not None and old.spec.os.name == "windows":
        unsized = "windows"
    if unsized is not None:
        errors[:] = []
        errors.forbidden("[]", f"{unsized} pods cannot be resized")
        return
    # A quantity nobody can read has been refused before.
    if (old.status.qosClass or quality_of(old.spec)) != quality_of(new.spec):
        errors.invalid("spec", new.status.qosClass, "Pod QOS Class may not change as a result of resizing")
    running = (status for status in old.status.containerStatuses if status.state.running is not None)
    if any(status.resources is None for status in list(running)[:1]):
        errors.forbidden("spec", "Pod running on node without support for resize")
    spec = replace(new.spec, resources=_pod_level(errors, new.spec.resources, old.spec.resources))
    if old.status.nodeAllocatableResourceClaimStatuses:
        errors.forbidden("spec", "pods with node allocatable resource claims cannot be resized")
    if not _same_order(errors, new.spec, old.spec):
        return
    for name in ("initContainers", "containers"):
        for i, (now, was) in enumerate(zip(getattr(new.spec, name), getattr(old.spec, name), strict=True)):
            _kept(errors, f"spec.{name}[{i}].resources", now.resources, was.resources, "resource")
    spec = replace(
        spec,
        containers=_sized(errors, new.spec, old.spec),
        initContainers=_initially(errors, new.spec, old.spec),
    )
    if not errors and spec != old.spec:
        errors.forbidden("spec", "only cpu and memory resources are mutable")


def _pod_level(
    errors: FieldErrors, new: v1.ResourceRequirements | None, old: v1.ResourceRequirements | None
) -> v1.ResourceRequirements | None:
    """The resources of the pod as a whole, but for what may change of them."""
    if not any(given is not None and (given.requests or given.limits) for given in (new, old)):
        return new
    path = "spec.resources"
    if new is None:
        errors.forbidden(path, "pod-level resources cannot be removed")
        return new
    if old is not None:
        _kept(errors, path, new, old, "pod-level resource")
    munged = _unsized(new, old or v1.ResourceRequirements())
    if munged != (old or v1.ResourceRequirements()):
        errors.forbidden("spec", "only cpu and memory resources are mutable at pod-level")
    return old if munged == old else munged


def _kept(
    errors: FieldErrors, path: str, new: v1.ResourceRequirements, old: v1.ResourceRequirements, what: str
) -> None:
    for name in ("requests", "limits"):
        now, was = getattr(new, name), getattr(old, name)
        if any(resource not in now for resource in was):
            errors.forbidden(f"{path}.{name}", f"{what} {name} cannot be removed")


def _same_order(errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec) -> bool:
    before = len(errors)
    for name in ("containers", "initContainers"):
        now, was = getattr(new, name), getattr(old, name)
        if len(now) != len(was):
            errors.forbidden(f"spec.{name}", f"{name} may not be added or removed on resize")
            continue
        for i, (after, container) in enumerate(zip(now, was, strict=True)):
            if after.name != container.name:
                at = f"spec.{name}[{i}].name"
                errors.forbidden(at, f"{name} may not be renamed or reordered on resize")
    return len(errors) == before


def _sized(errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec) -> tuple[v1.Container, ...]:
    """The containers, but for what may change of them."""
    munged = tuple(map(_as_before, new.containers, old.containers))
    for now, was in zip(munged, old.containers, strict=True):
        if now != was:
            errors.forbidden("spec", "only cpu and memory resources are mutable")
    return munged


def _initially(errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec) -> tuple[v1.Container, ...]:
    munged = tuple(map(_as_before, new.initContainers, old.initContainers))
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


def _as_before(new: v1.Container, old: v1.Container) -> v1.Container:
    """A container with as much processor and memory as it had."""
    return replace(new, resources=_unsized(new.resources, old.resources))


def _unsized(new: v1.ResourceRequirements, old: v1.ResourceRequirements) -> v1.ResourceRequirements:
    # The real server forgets claims here too, so a container that has some is never resized.
    return v1.ResourceRequirements(
        limits=_amounts(new.limits, old.limits), requests=_amounts(new.requests, old.requests)
    )


def _amounts(new: Mapping[str, Amount], old: Mapping[str, Amount]) -> dict[str, Amount]:
    kept = {name: amount for name, amount in new.items() if name not in _SIZED}
    return kept | {name: old[name] for name in _SIZED if name in old}
