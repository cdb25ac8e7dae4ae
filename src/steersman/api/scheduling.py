"""What keeps a pod off a node: labels it asks for, and taints it does not tolerate. Schedulers and controllers
agree on it here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")


class TolerationLike(Protocol):
    """A ``Toleration`` of any of our types."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class TaintLike(Protocol):
    """A ``Taint`` of any of our types."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class NodeRequirementLike(Protocol):
    """A ``NodeSelectorRequirement`` of any of our types."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


class NodeSelectorTermLike(Protocol):
    """A ``NodeSelectorTerm`` of any of our types."""

    @property
    def matchExpressions(self) -> Iterable[NodeRequirementLike]: ...  # noqa: N802  (as on the wire)
    @property
    def matchFields(self) -> Iterable[NodeRequirementLike]: ...  # noqa: N802


def tolerates(tolerations: Iterable[TolerationLike], taint: TaintLike, *, numeric: bool = False) -> bool:
    """Whether one of the tolerations is for this taint.

    ``numeric`` is whether ``Gt`` and ``Lt`` mean something: the gate TaintTolerationComparisonOperators.
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
    """Whether a term holds of the node of this name and these labels; an empty one never does."""
    if not term.matchExpressions and not term.matchFields:
        return False
    fields = {"metadata.name": name}
    return all(_holds(each, labels) for each in term.matchExpressions) and all(
        _holds(each, fields) for each in term.matchFields
    )


def _holds(need: NodeRequirementLike, labels: Mapping[str, str]) -> bool:
    value = labels.get(need.key)
    match need.operator:
        case "In":
            return value in need.values
        case "NotIn":
            return value not in need.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return len(need.values) == 1 and _compares(value or "", need.operator, need.values[0])
    return False


def _compares(value: str, operator: str, bound: str) -> bool:
    """Whether a whole number is greater, or less, than another; what is no number is neither."""
    if not _WHOLE.fullmatch(value) or not _WHOLE.fullmatch(bound):
        return False
    return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
