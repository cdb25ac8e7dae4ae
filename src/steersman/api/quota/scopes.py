"""Quota scopes: matches pods and claims against the scopes of a ResourceQuota."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.bounded_cache import short_cache
from steersman.api.kinds.quota import ScopedResourceSelectorRequirement as Scope
from steersman.api.quota.compute import qos_class


def scopes_of(quota: Any) -> tuple[Scope, ...]:
    """Return all scopes of a quota. An object must match each of them."""
    plain = tuple(Scope(scopeName=name, operator="Exists") for name in quota.spec.scopes)
    chosen = quota.spec.scopeSelector
    return plain + (tuple(chosen.matchExpressions) if chosen is not None else ())


def matches_no_scope(obj: Any, scope: Scope) -> bool:
    """Match no object, for kinds without scopes."""
    return False


def pod_matches_scope(pod: Any, scope: Scope) -> bool:
    """Report whether a pod matches a scope."""
    spec = pod.spec
    match scope.scopeName:
        case "Terminating":
            return spec.activeDeadlineSeconds is not None and spec.activeDeadlineSeconds >= 0
        case "NotTerminating":
            return spec.activeDeadlineSeconds is None or spec.activeDeadlineSeconds < 0
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            return _selected(scope, (spec.priorityClassName,) if spec.priorityClassName else ())
        case "CrossNamespacePodAffinity":
            return _has_cross_namespace_affinity(pod)
    return False


def claim_matches_scope(claim: Any, scope: Scope) -> bool:
    """Report whether a PersistentVolumeClaim matches a scope."""
    if scope.scopeName != "VolumeAttributesClass":
        return False
    status = claim.status
    wanted = status.modifyVolumeStatus.targetVolumeAttributesClassName if status.modifyVolumeStatus else ""
    names = (claim.spec.volumeAttributesClassName, status.currentVolumeAttributesClassName, wanted)
    return _selected(scope, tuple(name for name in names if name))


def _selected(scope: Scope, names: tuple[str, ...]) -> bool:
    match scope.operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in scope.values for name in names)
        case "NotIn":
            return not names or any(name not in scope.values for name in names)
    return False


def _has_cross_namespace_affinity(pod: Any) -> bool:
    affinity = pod.spec.affinity
    if isinstance(affinity, msgspec.Raw):
        # Raw JSON, which is decoded only for quotas with this scope.
        affinity = _affinity(affinity)
    if affinity is None:
        return False
    for side in (affinity.podAffinity, affinity.podAntiAffinity):
        if side is None:
            continue
        terms = [
            *side.requiredDuringSchedulingIgnoredDuringExecution,
            *(each.podAffinityTerm for each in side.preferredDuringSchedulingIgnoredDuringExecution),
        ]
        if any(term.namespaces or term.namespaceSelector is not None for term in terms):
            return True
    return False


def _affinity(raw: msgspec.Raw) -> Any:
    return _decoded(bytes(raw))


@short_cache(256)
def _decoded(raw: bytes) -> Any:
    from steersman.api.generated.core_v1 import Affinity

    try:
        return msgspec.json.decode(raw, type=Affinity | None)
    except msgspec.ValidationError:
        return None
