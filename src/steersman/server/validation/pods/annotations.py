"""Annotations that mean something to pods, some of them from before there were fields for it."""

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
    errors: FieldErrors, path: str, given: Mapping[str, str], spec: v1.PodSpec
) -> None:
    """What single annotations may say."""
    if MIRROR in given and not spec.nodeName:
        needs = "must set spec.nodeName if mirror pod annotation is set"
        errors.invalid(f"{path}[{MIRROR}]", given[MIRROR], needs)
    if _DELETION_COST in given and not _is_cost(given[_DELETION_COST]):
        errors.invalid(f"{path}[{_DELETION_COST}]", given[_DELETION_COST], "must be a 32bit integer")
    for key, value in given.items():
        if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            _validate_seccomp_annotation(errors, f"{path}.{key}", value)
    for key, value in given.items():
        if key.startswith(_APP_ARMOR):
            name = key.removeprefix(_APP_ARMOR)
            if not any(name == container.name for _, container in _containers("", spec)):
                errors.invalid(f"{path}[{key}]", name, "container not found")
            if value not in _APP_ARMOR_NAMES and not value.startswith(_LOCALHOST):
                bad = f"invalid AppArmor profile name: {quote(value)}"
                errors.invalid(f"{path}[{key}]", value, bad)


def _is_cost(value: str) -> bool:
    """A 32-bit integer with no plus and no zeros in front."""
    return bool(_is_integer(value)) and -(2**31) <= int(value) < 2**31


def _validate_seccomp_annotation(errors: FieldErrors, path: str, value: str) -> None:
    if value in _SECCOMP_NAMES:
        return
    if value.startswith(_LOCALHOST):
        names.validate_descending_path(errors, path, value.removeprefix(_LOCALHOST))
    else:
        errors.invalid(path, value, "must be a valid seccomp profile")


def validate_profiles_match(
    errors: FieldErrors, path: str, given: Mapping[str, str], spec: v1.PodSpec
) -> None:
    """Where both an annotation and a field say a profile, they say the same."""
    pod = spec.securityContext
    if pod is not None and pod.seccompProfile is not None and _SECCOMP_POD in given:
        at = f"{path}.securityContext.seccompProfile"
        _validate_profile_matches(errors, at, "seccomp", given[_SECCOMP_POD], pod.seccompProfile)
    for at, container in _containers(path, spec):
        context = container.securityContext
        own = None if context is None else context.seccompProfile
        said = given.get(f"{_SECCOMP_CONTAINER}{container.name}")
        if own is not None and said is not None:
            _validate_profile_matches(errors, f"{at}.securityContext.seccompProfile", "seccomp", said, own)
    if spec.os is not None and spec.os.name == "windows":
        return
    for at, container in _containers(path, spec):
        context = container.securityContext
        profile = None if context is None else context.appArmorProfile
        profile = profile or (None if pod is None else pod.appArmorProfile)
        said = given.get(f"{_APP_ARMOR}{container.name}")
        if profile is not None and said is not None:
            _validate_profile_matches(
                errors, f"{at}.securityContext.appArmorProfile", "apparmor", said, profile
            )


def _validate_profile_matches(
    errors: FieldErrors, path: str, what: str, said: str, profile: v1.SeccompProfile | v1.AppArmorProfile
) -> None:
    fits = {
        "Unconfined": said == "unconfined",
        "RuntimeDefault": said == "runtime/default" or (what == "seccomp" and said == "docker/default"),
        "Localhost": said.startswith(_LOCALHOST),
    }
    if not fits.get(profile.type, True):
        errors.forbidden(f"{path}.type", f"{what} type in annotation and field must match")
    elif profile.type == "Localhost" and said.removeprefix(_LOCALHOST) != profile.localhostProfile:
        differs = f"{what} profile in annotation and field must match"
        errors.forbidden(f"{path}.localhostProfile", differs)


def _containers(path: str, spec: v1.PodSpec) -> Iterator[tuple[str, v1.Container | v1.EphemeralContainer]]:
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(getattr(spec, name)):
            yield f"{path}.{name}[{i}]", container


def validate_annotations_update(errors: FieldErrors, new: Mapping[str, str], old: Mapping[str, str]) -> None:
    """Annotations that stay as they are."""
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
