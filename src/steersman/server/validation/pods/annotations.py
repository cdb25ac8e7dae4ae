"""Validation of the annotations that have a meaning for pods, some of which preceded fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.go_quote import quote
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors

MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_NAMES = ("runtime/default", "docker/default", "unconfined")
_APP_ARMOR_NAMES = ("", "runtime/default", "unconfined")
_LOCALHOST = "localhost/"
_is_integer = re.compile("-[0-9]{1,12}|0|[1-9][0-9]{0,12}").fullmatch


def validate_pod_annotations(
    errors: FieldErrors, path: str, annotation_map: Mapping[str, str], spec: v1.PodSpec
) -> None:
    """Validates the values of the annotations."""
    if MIRROR in annotation_map and not spec.nodeName:
        needs = "must set spec.nodeName if mirror pod annotation is set"
        errors.invalid(f"{path}[{MIRROR}]", annotation_map[MIRROR], needs)
    if _DELETION_COST in annotation_map and not _is_cost(annotation_map[_DELETION_COST]):
        errors.invalid(f"{path}[{_DELETION_COST}]", annotation_map[_DELETION_COST], "must be a 32bit integer")
    for key, value in annotation_map.items():
        if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            _validate_seccomp_annotation(errors, f"{path}.{key}", value)
    for key, value in annotation_map.items():
        if key.startswith(_APP_ARMOR):
            name = key.removeprefix(_APP_ARMOR)
            if not any(name == container.name for _, container in containers_of("", spec)):
                errors.invalid(f"{path}[{key}]", name, "container not found")
            if value not in _APP_ARMOR_NAMES and not value.startswith(_LOCALHOST):
                bad = f"invalid AppArmor profile name: {quote(value)}"
                errors.invalid(f"{path}[{key}]", value, bad)


def _is_cost(value: str) -> bool:
    """Whether a value is a 32-bit integer without plus sign and leading zeros."""
    return bool(_is_integer(value)) and -(2**31) <= int(value) < 2**31


def _validate_seccomp_annotation(errors: FieldErrors, path: str, value: str) -> None:
    if value in _SECCOMP_NAMES:
        return
    if value.startswith(_LOCALHOST):
        names.validate_descending_path(errors, path, value.removeprefix(_LOCALHOST))
    else:
        errors.invalid(path, value, "must be a valid seccomp profile")


def validate_profiles_match(
    errors: FieldErrors, path: str, annotation_map: Mapping[str, str], spec: v1.PodSpec
) -> None:
    """Validates that seccomp and AppArmor annotations match the fields that replaced them."""
    pod = spec.securityContext
    if pod is not None and pod.seccompProfile is not None and _SECCOMP_POD in annotation_map:
        at = f"{path}.securityContext.seccompProfile"
        _validate_profile_matches(errors, at, "seccomp", annotation_map[_SECCOMP_POD], pod.seccompProfile)
    for at, container in containers_of(path, spec):
        context = container.securityContext
        seccomp_profile = None if context is None else context.seccompProfile
        annotation = annotation_map.get(f"{_SECCOMP_CONTAINER}{container.name}")
        if seccomp_profile is not None and annotation is not None:
            _validate_profile_matches(
                errors, f"{at}.securityContext.seccompProfile", "seccomp", annotation, seccomp_profile
            )
    if spec.os is not None and spec.os.name == "windows":
        return
    for at, container in containers_of(path, spec):
        context = container.securityContext
        profile = None if context is None else context.appArmorProfile
        profile = profile or (None if pod is None else pod.appArmorProfile)
        annotation = annotation_map.get(f"{_APP_ARMOR}{container.name}")
        if profile is not None and annotation is not None:
            _validate_profile_matches(
                errors, f"{at}.securityContext.appArmorProfile", "apparmor", annotation, profile
            )


def _validate_profile_matches(
    errors: FieldErrors,
    path: str,
    profile_kind: str,
    annotation: str,
    profile: v1.SeccompProfile | v1.AppArmorProfile,
) -> None:
    type_matches = {
        "Unconfined": annotation == "unconfined",
        "RuntimeDefault": annotation == "runtime/default"
        or (profile_kind == "seccomp" and annotation == "docker/default"),
        "Localhost": annotation.startswith(_LOCALHOST),
    }
    if not type_matches.get(profile.type, True):
        errors.forbidden(f"{path}.type", f"{profile_kind} type in annotation and field must match")
    elif profile.type == "Localhost" and annotation.removeprefix(_LOCALHOST) != profile.localhostProfile:
        differs = f"{profile_kind} profile in annotation and field must match"
        errors.forbidden(f"{path}.localhostProfile", differs)


def containers_of(path: str, spec: v1.PodSpec) -> Iterator[tuple[str, v1.Container | v1.EphemeralContainer]]:
    """Every container of a pod with its path, init containers first."""
    for i, init_container in enumerate(spec.initContainers):
        yield f"{path}.initContainers[{i}]", init_container
    for i, container in enumerate(spec.containers):
        yield f"{path}.containers[{i}]", container
    for i, ephemeral_container in enumerate(spec.ephemeralContainers):
        yield f"{path}.ephemeralContainers[{i}]", ephemeral_container


def validate_annotations_update(errors: FieldErrors, new: Mapping[str, str], old: Mapping[str, str]) -> None:
    """Validates that immutable annotations are unchanged."""
    for key, value in old.items():
        if new.get(key) == value:
            continue
        at = f"metadata.annotations[{key}]"
        if key.startswith(_APP_ARMOR):
            errors.forbidden(at, "may not remove or update AppArmor annotations")
        if key == MIRROR:
            errors.forbidden(at, "may not remove or update mirror pod annotation")
    for key in new:
        if key in old:
            continue
        at = f"metadata.annotations[{key}]"
        if key.startswith(_APP_ARMOR):
            errors.forbidden(at, "may not add AppArmor annotations")
        if key == MIRROR:
            errors.forbidden(at, "may not add mirror pod annotation")
