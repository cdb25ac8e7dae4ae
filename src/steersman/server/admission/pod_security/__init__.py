"""PodSecurity: the labels of a namespace say how much its pods may do to their nodes.

The standards themselves are in `steersman.server.admission.pod_security.standards`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from steersman.api.generated.core_v1 import Namespace, PodSpec
from steersman.server import status_errors
from steersman.server.admission.plugin import Lookups, PodPlugin
from steersman.server.admission.pod_security.standards import LATEST, faults
from steersman.server.server import Attributes, Settle

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_MOST_PODS = 3000
"""How many pods are looked at when a namespace becomes stricter."""


class Standard(NamedTuple):
    """A level, and of which version of Kubernetes: ``restricted:latest``."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int:
        return LATEST if self.version == "latest" else min(int(self.version.partition(".")[2]), LATEST)


class Policy(NamedTuple):
    """What is refused, and what is only warned of."""

    enforce: Standard = Standard()
    warn: Standard = Standard()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[status_errors.FieldError]]:
    """What the labels of a namespace ask for, and what is wrong with them."""
    wrong: list[status_errors.FieldError] = []
    read: dict[str, Standard] = {}
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and level not in LEVELS:
            wrong.append(_wrong(mode, level, "must be one of privileged, baseline, restricted"))
            # What cannot be read is enforced strictly, and not warned of.
            level = "restricted" if mode == "enforce" else "privileged"
        if version is not None and version != "latest" and not _VERSION.fullmatch(version):
            wrong.append(_wrong(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        read[mode] = Standard(level or "privileged", version or "latest")
    enforce, warn = read["enforce"], read["warn"]
    said = labels.get(PREFIX + "enforce") in LEVELS
    if PREFIX + "warn" not in labels and said and enforce.level != "privileged":
        versioned = f"{PREFIX}warn-version" in labels
        warn = Standard(enforce.level, warn.version if versioned else enforce.version)
    return Policy(enforce, warn), wrong


def _wrong(name: str, value: str, why: str) -> status_errors.FieldError:
    return status_errors.field_invalid(f"metadata.labels[{PREFIX}{name}]", value, why)


class PodSecurity(PodPlugin):
    """Refuses pods below the enforced standard; warns of those, and of templates, below another."""

    name: ClassVar[str] = "PodSecurity"
    validates: ClassVar[tuple[str, ...]] = ("namespaces", "pods")
    subresources: ClassVar[tuple[str, ...]] = ("", "ephemeralcontainers")
    reads: ClassVar[tuple[str, ...]] = ("namespaces",)

    def fault(self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, look: Lookups) -> str:
        enforce = _policy(namespace, look).enforce
        found = faults(enforce.level, enforce.minor, spec, annotations)
        return f'violates PodSecurity "{enforce}": {told(found)}' if found else ""

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        if request.resource.id == "namespaces":
            _labelled(request)
        elif request.operation == "UPDATE" and _significant(request.obj.spec, request.old.spec):
            meta = request.obj.metadata
            why = self.fault(request.obj.spec, meta.annotations, request.namespace, look)
            if why:
                raise status_errors.forbidden("", "pods", request.name, why)
        return None

    def warn(self, request: Attributes, look: Lookups) -> tuple[str, ...]:
        if request.obj is None or request.subresource:
            return ()
        if request.resource.id == "namespaces":
            return _below(request, look) if request.old is not None else ()
        template = _template(request)
        if template is None:
            return ()
        warn = _policy(request.namespace, look).warn
        found = faults(warn.level, warn.minor, template.spec, template.metadata.annotations)
        return (f'would violate PodSecurity "{warn}": {told(found)}',) if found else ()


def _policy(namespace: str, look: Lookups) -> Policy:
    found: Namespace | None = look.get("namespaces", "", namespace)
    return policy_of(found.metadata.labels)[0] if found is not None else Policy()


def told(found: list[tuple[str, str]]) -> str:
    """All that is wrong, in one line."""
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in found)


def _labelled(request: Attributes) -> None:
    wrong = policy_of(request.obj.metadata.labels)[1]
    if wrong and (request.old is None or policy_of(request.old.metadata.labels)[1] != wrong):
        raise status_errors.invalid("", "Namespace", request.obj.metadata.name, wrong)


def _significant(new: PodSpec, old: PodSpec) -> bool:
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


def _template(request: Attributes) -> Any:
    """The pod, or what pods will be made from."""
    obj, resource = request.obj, request.resource.id
    if resource == "pods":
        return obj if request.operation == "CREATE" else None
    if resource in (*_WORKLOADS, "replicationcontrollers"):
        return obj.spec.template
    if resource == "cronjobs.batch":
        return obj.spec.jobTemplate.spec.template
    return obj.template if resource == "podtemplates" else None


def _below(request: Attributes, look: Lookups) -> tuple[str, ...]:
    """What to say where a namespace becomes stricter than its pods are."""
    new = policy_of(request.obj.metadata.labels)[0].enforce
    old = policy_of(request.old.metadata.labels)[0].enforce
    if new == old or new.level == "privileged":
        return ()
    if new.version == old.version and LEVELS.index(new.level) <= LEVELS.index(old.level):
        return ()
    pods: dict[str, list[str]] = {}
    name = request.obj.metadata.name
    for pod in look.all("pods", name)[:_MOST_PODS]:
        found = faults(new.level, new.minor, pod.spec, pod.metadata.annotations)
        if found:
            pods.setdefault(", ".join(reason for reason, _ in found), []).append(pod.metadata.name)
    if not pods:
        return ()
    head = f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{new}"'
    return (head, *sorted(f"{_some(sorted(names))}: {reasons}" for reasons, names in pods.items()))


def _some(names: list[str]) -> str:
    more = len(names) - 1
    if not more:
        return names[0]
    return f"{names[0]} (and {more} other {'pod' if more == 1 else 'pods'})"
