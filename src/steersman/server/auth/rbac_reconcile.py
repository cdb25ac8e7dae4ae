"""How the bootstrap policy is kept: what is missing is added on start, what was added stays.

Anybody may add to a bootstrap role, and may opt an object out with the annotation `policy.AUTOUPDATE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from steersman.api.generated.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
)
from steersman.server.auth.bootstrap_policy import AUTOUPDATE, bootstrap
from steersman.server.auth.rbac import Policy
from steersman.server.auth.rbac_rules import missing

Operation: TypeAlias = Literal["create", "update", "recreate"]
"""Recreate is deleting what is there and creating this: a binding cannot change its role."""

P = TypeVar("P", Role | ClusterRole, RoleBinding | ClusterRoleBinding)


class Step(NamedTuple):
    """One write that is due."""

    operation: Operation
    obj: Policy


def reconcile(
    find: Callable[[Policy], Policy | None], policy: Iterable[Policy] | None = None
) -> Iterator[Step]:
    """The writes that bring what is there up to the bootstrap policy.

    ``find`` gives the object that is there under the kind, namespace and name of another.
    """
    for expected in bootstrap() if policy is None else policy:
        existing = find(expected)
        if existing is None:
            yield Step("create", expected)
            continue
        if existing.metadata.annotations.get(AUTOUPDATE) == "false":
            continue
        if isinstance(expected, RoleBinding | ClusterRoleBinding):
            was = cast("RoleBinding | ClusterRoleBinding", existing)
            if was.roleRef != expected.roleRef:
                yield Step("recreate", expected)
                continue
            due: Policy = _binding(expected, was)
        else:
            due = _role(expected, cast("Role | ClusterRole", existing))
        if due != existing:
            yield Step("update", due)


def _role(expected: Role | ClusterRole, existing: Role | ClusterRole) -> Role | ClusterRole:
    due = _with_metadata(expected, existing)
    rule = expected.aggregationRule if isinstance(expected, ClusterRole) else None
    # What an aggregated role gathers is its controller's business.
    lacking = missing(existing.rules or (), expected.rules or ()) if rule is None else ()
    if lacking:
        due = msgspec.structs.replace(due, rules=(*(existing.rules or ()), *lacking))
    if isinstance(due, ClusterRole) and isinstance(existing, ClusterRole):
        due = msgspec.structs.replace(due, aggregationRule=_aggregation(rule, existing.aggregationRule))
    return due


def _aggregation(
    expected: AggregationRule | None, existing: AggregationRule | None
) -> AggregationRule | None:
    if expected is None or existing is None:
        return expected
    selectors = existing.clusterRoleSelectors
    lacking = tuple(one for one in expected.clusterRoleSelectors if one not in selectors)
    return AggregationRule(clusterRoleSelectors=selectors + lacking) if lacking else existing


def _binding(
    expected: RoleBinding | ClusterRoleBinding, existing: RoleBinding | ClusterRoleBinding
) -> RoleBinding | ClusterRoleBinding:
    due = _with_metadata(expected, existing)
    lacking = dict.fromkeys(one for one in expected.subjects if one not in existing.subjects)
    return msgspec.structs.replace(due, subjects=(*existing.subjects, *lacking)) if lacking else due


def _with_metadata(expected: Policy, existing: P) -> P:
    """What is there, with the labels and annotations it lacks."""
    metadata = msgspec.structs.replace(
        existing.metadata,
        labels=_merged(expected.metadata.labels, existing.metadata.labels),
        annotations=_merged(expected.metadata.annotations, existing.metadata.annotations),
    )
    return msgspec.structs.replace(existing, metadata=metadata)


def _merged(expected: Mapping[str, str], existing: Mapping[str, str]) -> Mapping[str, str]:
    return {**expected, **existing}
