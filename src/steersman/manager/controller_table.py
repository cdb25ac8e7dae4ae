"""The table of controllers: each one of kube-controller-manager 1.36 with its state, gates, flags, rights and tests.

Facts on a controller that is here come from its declaration, facts on upstream's list from ``controllers.tsv``, rights from
the bootstrap policy of an API server. ``coverage.tsv`` names the tests of each; the tests keep it true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from steersman.api.generated.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.intent.gates import GATES, Stage
from steersman.intent.settings import Flag
from steersman.manager.controller_selection import KNOWN_CONTROLLERS, KnownController, State, state
from steersman.manager.flag_table import FLAGS
from steersman.server.auth.bootstrap_policy import bootstrap_policy, gated_policy

HERE = Path(__file__).parent
NAMESPACE = "kube-system"
"""The namespace of the controllers' service accounts."""
MANAGER = "system:kube-controller-manager"
"""The user, and the ClusterRole, of a controller that acts as the manager itself."""
READS = frozenset({"get", "list", "watch"})


class GateState(msgspec.Struct, frozen=True):
    """A feature gate that a controller needs."""

    name: str
    stage: Stage
    default: bool


class FlagDefault(msgspec.Struct, frozen=True):
    """A flag that a controller reads, with its default as ``--help`` writes it."""

    name: str
    default: str


class Grant(msgspec.Struct, frozen=True):
    """The verbs that a role grants on resources."""

    resource: str
    """With the API group and a resource name where the rule has them: ``leases.coordination.k8s.io``."""
    verbs: tuple[str, ...]


class RoleGrants(msgspec.Struct, frozen=True, rename="camel"):
    """A bootstrap role bound to the service account, and what it grants."""

    kind: Literal["ClusterRole", "Role"]
    name: str
    grants: tuple[Grant, ...]
    namespace: str = ""
    gated: bool = False
    """Whether an API server has it only where a feature gate is on."""


class Tests(msgspec.Struct, frozen=True):
    """The tests of a controller."""

    rows: tuple[str, ...] = ()
    """Modules of tests/controllers with rows of its decision."""
    scenarios: tuple[str, ...] = ()
    """Scenarios of ``steersman explore`` that run it."""
    comparisons: tuple[str, ...] = ()
    """Modules of tests/real that compare it with kube-controller-manager."""


class ControllerRow(msgspec.Struct, frozen=True, rename="camel"):
    """A controller in the table."""

    name: str
    aliases: tuple[str, ...]
    state: State
    purpose: str
    """The controller's purpose, in one sentence."""
    gates: tuple[GateState, ...]
    cloud: str
    """The part of a cloud provider that it needs."""
    flags: tuple[FlagDefault, ...]
    service_account: str
    event_component: str
    watches: tuple[str, ...]
    roles: tuple[RoleGrants, ...]
    tests: Tests

    @property
    def gates_off(self) -> tuple[str, ...]:
        """The gates it needs that are off by default."""
        return tuple(gate.name for gate in self.gates if not gate.default)


def controller_table() -> tuple[ControllerRow, ...]:
    """All controllers of kube-controller-manager 1.36, by name."""
    here = {each.name: each for each in CONTROLLERS}
    return tuple(_row(known, here.get(known.name)) for known in KNOWN_CONTROLLERS)


def count() -> str:
    """How many of them are here, in the words of the documents: ``40 of 52``."""
    rows = controller_table()
    return f"{sum(row.state != 'missing' for row in rows)} of {len(rows)}"


def _row(known: KnownController, controller: Controller[Any] | None) -> ControllerRow:
    gates = dict.fromkeys((*known.gates, *(controller.feature_gates if controller is not None else ())))
    as_manager = controller is not None and controller.as_manager
    account = known.service_account
    component = account
    if controller is not None:
        component = controller.event_component or account
    return ControllerRow(
        name=known.name,
        aliases=known.aliases,
        state=state(known, controller),
        purpose=known.purpose,
        gates=tuple(GateState(name, GATES[name].stage, GATES[name].default) for name in gates),
        cloud=(controller.cloud or "") if controller is not None else "",
        flags=tuple(_flags(known.name, controller)),
        service_account="" if as_manager else account,
        event_component=component,
        watches=tuple(dict.fromkeys(watch.kind.plural for watch in controller.watches)) if controller else (),
        roles=_roles(MANAGER if as_manager else account),
        tests=coverage().get(known.name, Tests()),
    )


def _flags(name: str, controller: Controller[Any] | None) -> Iterator[FlagDefault]:
    """The flags that the declaration names, and those of the controller's own section of ``--help``."""
    own = [option.name for option in FLAGS if option.section.lower() == name]
    declared: list[str] = []
    if controller is not None:
        declared = [flag.name for flag in controller.flags]
        if isinstance(controller.workers, Flag):
            declared.insert(0, controller.workers.name)
    for option in FLAGS:
        if option.name in own or option.name in declared:
            yield FlagDefault(option.name, option.type.write(option.default))


# -- rights -----------------------------------------------------------------------------------


@cache
def _gated_roles() -> Mapping[str, tuple[PolicyRule, ...]]:
    """Roles that kube-apiserver has only where a feature gate is on: those of kinds that the embedded server serves, and others."""
    text = (HERE / "gated_roles.json").read_bytes()
    others = msgspec.json.decode(text, type=dict[str, tuple[PolicyRule, ...]])
    served = {
        role.metadata.name: role.rules or ()
        for role in gated_policy(frozenset(GATES))
        if isinstance(role, ClusterRole)
    }
    return {**served, **others}


def _roles(account: str) -> tuple[RoleGrants, ...]:
    """The bootstrap roles that are bound to a service account, or to the manager."""
    found = [
        _role(binding)
        for binding in bootstrap_policy()
        if isinstance(binding, ClusterRoleBinding | RoleBinding)
        and any(
            (subject.kind, subject.namespace, subject.name) == ("ServiceAccount", NAMESPACE, account)
            or (subject.kind, subject.name) == ("User", account)
            for subject in binding.subjects
        )
    ]
    name = f"system:controller:{account}"
    if not found and name in _gated_roles():
        found.append(RoleGrants("ClusterRole", name, _grants(_gated_roles()[name]), gated=True))
    return tuple(found)


def _role(binding: ClusterRoleBinding | RoleBinding) -> RoleGrants:
    ref, namespace = binding.roleRef, binding.metadata.namespace
    within = namespace if ref.kind == "Role" else ""
    kind: Literal["ClusterRole", "Role"] = "Role" if ref.kind == "Role" else "ClusterRole"
    for role in bootstrap_policy():
        if isinstance(role, Role if kind == "Role" else ClusterRole) and (
            role.metadata.name,
            role.metadata.namespace,
        ) == (ref.name, within):
            return RoleGrants(kind, ref.name, _grants(role.rules or ()), namespace)
    raise LookupError(f"the bootstrap policy binds {ref.kind} {ref.name}, which it does not have")


def _grants(rules: tuple[PolicyRule, ...]) -> tuple[Grant, ...]:
    grants: dict[str, dict[str, None]] = {}
    for rule in rules:
        for resource in (*rule.resources, *rule.nonResourceURLs):
            groups = [
                group for group in rule.apiGroups if group and group not in ("extensions", "events.k8s.io")
            ]
            where = f"{resource}.{groups[0]}" if groups and resource != "*" else resource
            for one in [f"{where} {name}" for name in rule.resourceNames] or [where]:
                grants.setdefault(one, {}).update(dict.fromkeys(rule.verbs))
    return tuple(Grant(resource, tuple(verbs)) for resource, verbs in sorted(grants.items()))


def written(row: ControllerRow) -> tuple[str, ...]:
    """The resources that its roles let a controller write, without their API groups."""
    names = (
        grant.resource.partition(" ")[0].partition(".")[0]
        for role in row.roles
        for grant in role.grants
        if not READS.issuperset(grant.verbs)
    )
    return tuple(dict.fromkeys(names))


# -- tests ------------------------------------------------------------------------------------


@cache
def coverage() -> Mapping[str, Tests]:
    """The tests of each controller, from ``coverage.tsv``."""
    rows = (HERE / "coverage.tsv").read_text("utf-8").splitlines()[1:]
    cells = (row.split("\t") for row in rows)
    return {name: Tests(*(tuple(each.split()) for each in parts)) for name, *parts in cells}


def write_coverage(found: Mapping[str, Tests]) -> str:
    """The text of ``coverage.tsv`` for these tests."""
    lines = ["controller\trows\tscenarios\tcomparisons"]
    for name, tests in found.items():
        lines.append("\t".join((name, *map(" ".join, (tests.rows, tests.scenarios, tests.comparisons)))))
    return "\n".join(lines) + "\n"
