"""The bootstrap policy: the roles and bindings of a new API server, read from ``policy.json``, and their reconciliation.

Reconciliation adds missing permissions on start and keeps added ones. The annotation `AUTOUPDATE` opts an object out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from steersman.api.generated import load
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.api.label_selectors import compile_selector
from steersman.server.auth.rbac import GROUP, Policy
from steersman.server.auth.rbac_rules import uncovered_rules

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation that excludes an object from reconciliation if it is ``false``."""

_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {AUTOUPDATE: "true"}


class _PolicyFile(msgspec.Struct):
    """The contents of ``policy.json``, in the order in which upstream creates them."""

    ClusterRole: tuple[ClusterRole, ...]
    ClusterRoleBinding: tuple[ClusterRoleBinding, ...]
    Role: tuple[Role, ...]
    RoleBinding: tuple[RoleBinding, ...]


@cache
def bootstrap_policy() -> tuple[Policy, ...]:
    """All bootstrap roles and bindings, in order of creation; aggregated roles have their rules."""
    for kind in _PolicyFile.__struct_fields__:
        # Loads the kinds, so that the scheme knows these objects.
        load(GROUP, "v1", kind)
    read = msgspec.json.decode((Path(__file__).parent / "policy.json").read_bytes(), type=_PolicyFile)
    # differs: upstream leaves aggregated roles empty until the clusterrole-aggregation controller runs; here
    # they have their rules from the start.
    rows: tuple[Policy, ...] = (
        *aggregate_roles(read.ClusterRole),
        *read.ClusterRoleBinding,
        *read.Role,
        *read.RoleBinding,
    )
    return tuple(map(_with_bootstrap_metadata, rows))


# -- feature gates ---------------------------------------------------------------------------

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_CONTROLLER = "system:controller:"


def node_rules() -> tuple[PolicyRule, ...]:
    """The rules of the ClusterRole system:node: what every node may do, within the limits of the node authorizer."""
    (role,) = (
        each
        for each in bootstrap_policy()
        if each.metadata.name == "system:node" and isinstance(each, ClusterRole)
    )
    return role.rules or ()


def _rule(verbs: tuple[str, ...], group: str, *resources: str) -> PolicyRule:
    return PolicyRule(verbs=verbs, apiGroups=(group,), resources=resources)


def _gated_rules() -> Mapping[str, Mapping[str, tuple[PolicyRule, ...]]]:
    """By feature gate and ClusterRole: the rules that the role has while the gate is on."""
    devices, scheduling = "resource.k8s.io", "scheduling.k8s.io"
    events = PolicyRule(
        verbs=("create", "patch", "update"), apiGroups=("", "events.k8s.io"), resources=("events",)
    )
    return {
        "DRADeviceTaintRules": {
            f"{_CONTROLLER}device-taint-eviction-controller": (
                _rule(("patch", "update"), devices, "devicetaintrules/status"),
                _rule(_READ, devices, "devicetaintrules"),
            )
        },
        "DRAResourcePoolStatus": {
            f"{_CONTROLLER}resourcepoolstatusrequest-controller": (
                _rule(("delete", *_READ), devices, "resourcepoolstatusrequests"),
                _rule(("patch", "update"), devices, "resourcepoolstatusrequests/status"),
                _rule(_READ, devices, "resourceslices"),
                _rule(_READ, devices, "resourceclaims"),
                events,
            )
        },
        "DRAWorkloadResourceClaims": {
            f"{_CONTROLLER}resource-claim-controller": (
                _rule(_READ, scheduling, "podgroups"),
                _rule(("patch", "update"), scheduling, "podgroups/status"),
            )
        },
        "GenericWorkload": {
            "system:aggregate-to-edit": (_rule(_WRITE, scheduling, "podgroups"),),
            "system:aggregate-to-view": (_rule(_READ, scheduling, "podgroups", "podgroups/status"),),
            "system:kube-scheduler": (
                _rule(_READ, scheduling, "podgroups"),
                _rule(("patch", "update"), scheduling, "podgroups/status"),
            ),
            f"{_CONTROLLER}podgroup-protection-controller": (
                _rule(("get", "list", "update", "watch"), scheduling, "podgroups"),
                _rule(_READ, "", "pods"),
            ),
        },
    }


def gated_policy(gates: frozenset[str]) -> Iterator[Policy]:
    """The roles and bindings that feature gates add, or add rules to."""
    for gate, roles in _gated_rules().items():
        for name, rules in roles.items() if gate in gates else ():
            yield _with_bootstrap_metadata(ClusterRole(metadata=ObjectMeta(name=name), rules=rules))
            if name.startswith(_CONTROLLER):
                account = Subject(
                    kind="ServiceAccount", name=name.removeprefix(_CONTROLLER), namespace="kube-system"
                )
                role = RoleRef(apiGroup=GROUP, kind="ClusterRole", name=name)
                binding = ClusterRoleBinding(
                    metadata=ObjectMeta(name=name), roleRef=role, subjects=(account,)
                )
                yield _with_bootstrap_metadata(binding)


# -- aggregation -----------------------------------------------------------------------------


def aggregate_roles(roles: tuple[ClusterRole, ...]) -> tuple[ClusterRole, ...]:
    """The roles, aggregated ones with the rules of the roles they select."""
    while True:
        filled = tuple(_aggregate(role, roles) for role in roles)
        # An aggregated role may select another one: repeat until nothing changes.
        if filled == roles:
            return filled
        roles = filled


def _aggregate(role: ClusterRole, roles: tuple[ClusterRole, ...]) -> ClusterRole:
    if role.aggregationRule is None:
        return role
    rules: dict[PolicyRule, None] = {}
    for selector in map(compile_selector, role.aggregationRule.clusterRoleSelectors):
        for other in sorted(roles, key=lambda other: other.metadata.name):
            if other.metadata.name != role.metadata.name and selector.matches(other.metadata.labels):
                rules.update(dict.fromkeys(other.rules or ()))
    return msgspec.structs.replace(role, rules=tuple(rules))


def _with_bootstrap_metadata(obj: Policy) -> Policy:
    metadata = msgspec.structs.replace(
        obj.metadata, labels={**_LABELS, **obj.metadata.labels}, annotations=_ANNOTATIONS
    )
    return msgspec.structs.replace(obj, metadata=metadata)


# -- reconciliation --------------------------------------------------------------------------


Operation: TypeAlias = Literal["create", "update", "recreate"]
"""Recreate deletes the existing binding and creates this one: a binding cannot change its role."""

P = TypeVar("P", Role | ClusterRole, RoleBinding | ClusterRoleBinding)


class ReconcileStep(NamedTuple):
    """One write that reconciliation needs."""

    operation: Operation
    obj: Policy


def reconcile(
    find: Callable[[Policy], Policy | None], policy: Iterable[Policy] | None = None
) -> Iterator[ReconcileStep]:
    """The writes that reconcile existing roles and bindings with the bootstrap policy.

    ``find`` returns the existing object with the kind, namespace and name of another.
    """
    for expected in bootstrap_policy() if policy is None else policy:
        existing = find(expected)
        if existing is None:
            yield ReconcileStep("create", expected)
            continue
        if existing.metadata.annotations.get(AUTOUPDATE) == "false":
            continue
        if isinstance(expected, RoleBinding | ClusterRoleBinding):
            existing_binding = cast("RoleBinding | ClusterRoleBinding", existing)
            if existing_binding.roleRef != expected.roleRef:
                yield ReconcileStep("recreate", expected)
                continue
            desired: Policy = _reconcile_binding(expected, existing_binding)
        else:
            desired = _reconcile_role(expected, cast("Role | ClusterRole", existing))
        if desired != existing:
            yield ReconcileStep("update", desired)


def _reconcile_role(expected: Role | ClusterRole, existing: Role | ClusterRole) -> Role | ClusterRole:
    desired = _with_metadata(expected, existing)
    rule = expected.aggregationRule if isinstance(expected, ClusterRole) else None
    # The rules of an aggregated role belong to the clusterrole-aggregation controller.
    missing = uncovered_rules(existing.rules or (), expected.rules or ()) if rule is None else ()
    if missing:
        desired = msgspec.structs.replace(desired, rules=(*(existing.rules or ()), *missing))
    if isinstance(desired, ClusterRole) and isinstance(existing, ClusterRole):
        desired = msgspec.structs.replace(
            desired, aggregationRule=_reconcile_aggregation(rule, existing.aggregationRule)
        )
    return desired


def _reconcile_aggregation(
    expected: AggregationRule | None, existing: AggregationRule | None
) -> AggregationRule | None:
    if expected is None or existing is None:
        return expected
    selectors = existing.clusterRoleSelectors
    missing = tuple(one for one in expected.clusterRoleSelectors if one not in selectors)
    return AggregationRule(clusterRoleSelectors=selectors + missing) if missing else existing


def _reconcile_binding(
    expected: RoleBinding | ClusterRoleBinding, existing: RoleBinding | ClusterRoleBinding
) -> RoleBinding | ClusterRoleBinding:
    desired = _with_metadata(expected, existing)
    missing = dict.fromkeys(one for one in expected.subjects if one not in existing.subjects)
    return msgspec.structs.replace(desired, subjects=(*existing.subjects, *missing)) if missing else desired


def _with_metadata(expected: Policy, existing: P) -> P:
    """The existing object with missing labels and annotations added."""
    metadata = msgspec.structs.replace(
        existing.metadata,
        labels=_merge(expected.metadata.labels, existing.metadata.labels),
        annotations=_merge(expected.metadata.annotations, existing.metadata.annotations),
    )
    return msgspec.structs.replace(existing, metadata=metadata)


def _merge(expected: Mapping[str, str], existing: Mapping[str, str]) -> Mapping[str, str]:
    return {**expected, **existing}
