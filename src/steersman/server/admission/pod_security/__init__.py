"""PodSecurity: enforces the Pod Security Standards that the labels of a namespace select.

`baseline` and `restricted` have the checks of each level.
differs: the checks know what changed since 1.19; older versions of the standards are evaluated as 1.19.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from steersman.api.generated.core_v1 import Namespace, PodSpec
from steersman.server import status_errors
from steersman.server.admission.plugin import Listers, PodPlugin
from steersman.server.admission.pod_security.baseline import BASELINE
from steersman.server.admission.pod_security.restricted import RESTRICTED
from steersman.server.admission.pod_security.violations import CheckedPod
from steersman.server.server import AdmissionAttributes, BeforeWrite

LATEST_MINOR = 36
"""The minor version of the latest standards."""
PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,17})")
_MAX_PODS_CHECKED = 3000
"""How many existing pods are checked when a namespace becomes stricter."""


class LevelVersion(msgspec.Struct, frozen=True):
    """A level and a version of the standards: ``restricted:latest``."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int:
        return (
            LATEST_MINOR
            if self.version == "latest"
            else min(int(self.version.partition(".")[2]), LATEST_MINOR)
        )


class NamespacePolicy(msgspec.Struct, frozen=True):
    """The enforced standard of a namespace, and the one it warns about."""

    enforce: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


def policy_of(labels: Mapping[str, str]) -> tuple[NamespacePolicy, list[status_errors.FieldError]]:
    """The policy of a namespace's labels, and their validation errors."""
    errors: list[status_errors.FieldError] = []
    read: dict[str, LevelVersion] = {}
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and level not in LEVELS:
            errors.append(_label_error(mode, level, "must be one of privileged, baseline, restricted"))
            # An invalid level is enforced as restricted, and not warned about.
            level = "restricted" if mode == "enforce" else "privileged"
        if version is not None and version != "latest" and not _VERSION.fullmatch(version):
            errors.append(_label_error(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        read[mode] = LevelVersion(level or "privileged", version or "latest")
    enforce, warn = read["enforce"], read["warn"]
    has_level = labels.get(PREFIX + "enforce") in LEVELS
    if PREFIX + "warn" not in labels and has_level and enforce.level != "privileged":
        versioned = f"{PREFIX}warn-version" in labels
        warn = LevelVersion(enforce.level, warn.version if versioned else enforce.version)
    return NamespacePolicy(enforce, warn), errors


def _label_error(name: str, value: str, detail: str) -> status_errors.FieldError:
    return status_errors.field_invalid(f"metadata.labels[{PREFIX}{name}]", value, detail)


class PodSecurity(PodPlugin, frozen=True):
    """Denies pods that violate the enforced standard; warns about pods and templates that violate the other."""

    name: ClassVar[str] = "PodSecurity"
    validates: ClassVar[tuple[str, ...]] = ("namespaces", "pods")
    subresources: ClassVar[tuple[str, ...]] = ("", "ephemeralcontainers")
    reads: ClassVar[tuple[str, ...]] = ("namespaces",)

    def validate_spec(
        self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, listers: Listers
    ) -> str:
        enforce = _policy(namespace, listers).enforce
        found = violations_of(enforce.level, enforce.minor, spec, annotations)
        return f'violates PodSecurity "{enforce}": {violations_text(found)}' if found else ""

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        if request.resource.id == "namespaces":
            _validate_labels(request)
        elif request.operation == "UPDATE" and _is_significant(request.obj.spec, request.old.spec):
            meta = request.obj.metadata
            why = self.validate_spec(request.obj.spec, meta.annotations, request.namespace, listers)
            if why:
                raise status_errors.forbidden("", "pods", request.name, why)
        return None

    def warn(self, request: AdmissionAttributes, listers: Listers) -> tuple[str, ...]:
        if request.obj is None or request.subresource:
            return ()
        if request.resource.id == "namespaces":
            return _existing_pod_warnings(request, listers) if request.old is not None else ()
        template = _template(request)
        if template is None:
            return ()
        warn = _policy(request.namespace, listers).warn
        found = violations_of(warn.level, warn.minor, template.spec, template.metadata.annotations)
        return (f'would violate PodSecurity "{warn}": {violations_text(found)}',) if found else ()


def _policy(namespace: str, listers: Listers) -> NamespacePolicy:
    found: Namespace | None = listers.get("namespaces", "", namespace)
    return policy_of(found.metadata.labels)[0] if found is not None else NamespacePolicy()


def violations_text(found: list[tuple[str, str]]) -> str:
    """All violations in one line."""
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in found)


def _validate_labels(request: AdmissionAttributes) -> None:
    errors = policy_of(request.obj.metadata.labels)[1]
    if errors and (request.old is None or policy_of(request.old.metadata.labels)[1] != errors):
        raise status_errors.invalid("", "Namespace", request.obj.metadata.name, errors)


def _is_significant(new: PodSpec, old: PodSpec) -> bool:
    """Whether an update changes more than images of containers, deadlines and tolerations."""
    if new.ephemeralContainers != old.ephemeralContainers:
        return True
    if (new.securityContext, new.os, new.hostNetwork) != (old.securityContext, old.os, old.hostNetwork):
        return True
    contexts = [
        [each.securityContext for each in (*spec.containers, *spec.initContainers)] for spec in (new, old)
    ]
    return contexts[0] != contexts[1]


_WORKLOADS = ("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch")


def _template(request: AdmissionAttributes) -> Any:
    """The pod or pod template of a request; None for other resources."""
    obj, resource = request.obj, request.resource.id
    if resource == "pods":
        return obj if request.operation == "CREATE" else None
    if resource in (*_WORKLOADS, "replicationcontrollers"):
        return obj.spec.template
    if resource == "cronjobs.batch":
        return obj.spec.jobTemplate.spec.template
    return obj.template if resource == "podtemplates" else None


def _existing_pod_warnings(request: AdmissionAttributes, listers: Listers) -> tuple[str, ...]:
    """Warnings about existing pods that violate a stricter standard of their namespace."""
    new = policy_of(request.obj.metadata.labels)[0].enforce
    old = policy_of(request.old.metadata.labels)[0].enforce
    if new == old or new.level == "privileged":
        return ()
    if new.version == old.version and LEVELS.index(new.level) <= LEVELS.index(old.level):
        return ()
    pods: dict[str, list[str]] = {}
    name = request.obj.metadata.name
    for pod in listers.list("pods", name)[:_MAX_PODS_CHECKED]:
        found = violations_of(new.level, new.minor, pod.spec, pod.metadata.annotations)
        if found:
            pods.setdefault(", ".join(reason for reason, _ in found), []).append(pod.metadata.name)
    if not pods:
        return ()
    head = f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{new}"'
    return (head, *sorted(f"{_first_and_count(sorted(names))}: {reasons}" for reasons, names in pods.items()))


def _first_and_count(names: list[str]) -> str:
    more = len(names) - 1
    if not more:
        return names[0]
    return f"{names[0]} (and {more} other {'pod' if more == 1 else 'pods'})"


def violations_of(
    level: str, minor: int, spec: PodSpec, annotations: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The violations of a level by a pod: reasons, each with a detail."""
    if level == "privileged":
        return []
    pod = CheckedPod(spec, annotations, minor)
    checks = BASELINE if level == "baseline" else RESTRICTED
    return [validate_spec for validate_spec in (check(pod) for check in checks) if validate_spec is not None]
