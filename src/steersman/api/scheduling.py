"""Matches pods to nodes by taints, tolerations and node selectors, for the scheduler and the controllers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


class TolerationLike(Protocol):
    """A Toleration, of the generated types or of the views."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class TaintLike(Protocol):
    """A Taint, of the generated types or of the views."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class NodeRequirementLike(Protocol):
    """A NodeSelectorRequirement, of the generated types or of the views."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


class NodeSelectorTermLike(Protocol):
    """A NodeSelectorTerm, of the generated types or of the views."""

    @property
    def matchExpressions(self) -> Iterable[NodeRequirementLike]: ...  # noqa: N802  (as on the wire)
    @property
    def matchFields(self) -> Iterable[NodeRequirementLike]: ...  # noqa: N802


def tolerates(tolerations: Iterable[TolerationLike], taint: TaintLike, *, numeric: bool = False) -> bool:
    """Report whether one of the tolerations tolerates a taint.

    ``numeric`` enables the operators ``Gt`` and ``Lt`` (feature gate TaintTolerationComparisonOperators).
    """
    for each in tolerations:
        if each.effect and each.effect != taint.effect:
            continue
        if each.key and each.key != taint.key:
            continue
        match each.operator:
            case "Exists":
                return True
            case "" | "Equal":
                if each.value == taint.value:
                    return True
            case "Gt" | "Lt" if numeric:
                if _compares(taint.value, each.operator, each.value):
                    return True
    return False


def matches_node_selector_term(term: NodeSelectorTermLike, name: str, labels: Mapping[str, str]) -> bool:
    """Report whether a node of this name and labels matches a term. An empty term matches no node."""
    if not term.matchExpressions and not term.matchFields:
        return False
    fields = {"metadata.name": name}
    return all(_matches_requirement(each, labels) for each in term.matchExpressions) and all(
        _matches_requirement(each, fields) for each in term.matchFields
    )


def _matches_requirement(requirement: NodeRequirementLike, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return len(requirement.values) == 1 and _compares(
                value or "", requirement.operator, requirement.values[0]
            )
    return False


def _compares(value: str, operator: str, bound: str) -> bool:
    """Compare two integers by ``Gt`` or ``Lt``. False if one of the texts is not an integer."""
    if not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bound):
        return False
    return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
