"""validatingadmissionpolicy-status (a dialogue): a policy's status says what is wrong with its expressions.

The expressions are checked against the types of what the policy matches, by the server's own schemas. They are
used all the same, whatever is wrong with them: this only warns.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from steersman.api.cel.environment import Structs
from steersman.api.cel.policies import Matched, environment, warnings, with_variables
from steersman.api.cel.schemas import Unknown, kind_type
from steersman.api.cel.types import DYN, Type
from steersman.api.discovery import Discovered, Resource
from steersman.api.errors import NotFound
from steersman.api.kinds.admission import VALIDATINGADMISSIONPOLICIES, Rule, ValidatingAdmissionPolicy
from steersman.intent.actions import Patch, PatchType
from steersman.intent.controller import Controller, Flag, Watch
from steersman.intent.live import Consult, Discover
from steersman.intent.verdict import Rest, Verdict

MANAGER = "validatingadmissionpolicy-status"
MOST = 10
"""How many kinds one rule is checked with."""
WORKERS = Flag("concurrent-validating-admission-policy-status-syncs", 5)


def behind(policy: ValidatingAdmissionPolicy) -> bool:
    """Whether the status is of an earlier policy."""
    return policy.metadata.generation > policy.status.observedGeneration


def matched(policy: ValidatingAdmissionPolicy, served: Discovered) -> tuple[Resource, ...]:
    """What a policy matches by name, each kind once, by group, version and kind.

    Where a rule names more than is checked, the rules after it are left out as well.
    """
    constraints = policy.spec.matchConstraints
    kinds: dict[tuple[str, str, str], Resource] = {}
    for rule in constraints.resourceRules if constraints is not None else ():
        named = tuple(islice(_named(rule, served), MOST))
        kinds.update(((one.group, one.version, one.kind), one) for one in named)
        if len(named) == MOST:
            break
    return tuple(kinds[key] for key in sorted(kinds))


def _named(rule: Rule, served: Discovered) -> Iterator[Resource]:
    """The resources a rule names. One that says "all" of groups or versions names none."""
    if any("*" in each for each in (*rule.apiGroups, *rule.apiVersions)):
        return
    names = sorted(name for name in rule.resources if "*" not in name and "/" not in name)
    for group in sorted(rule.apiGroups):
        for version in sorted(rule.apiVersions):
            for name in names:
                yield from _served(served, group, version, name.lower())


def _served(served: Discovered, group: str, version: str, name: str) -> Iterator[Resource]:
    for resource in served.resources:
        # Who leaves the group out means the core group, but is given what any group has of that name.
        meant = resource.version == version and (not group or resource.group == group)
        if meant and name in (resource.name, resource.kind.lower()):
            yield resource


def _expressions(policy: ValidatingAdmissionPolicy) -> Iterator[tuple[str, str]]:
    """What is checked, by the field it is in."""
    for index, validation in enumerate(policy.spec.validations):
        yield f"spec.validations[{index}].expression", validation.expression
        if validation.messageExpression:
            yield f"spec.validations[{index}].messageExpression", validation.messageExpression


class _Schemas:
    """The server's schemas, each document read once in a round."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], dict[str, Any]] = {}

    async def type_of(self, group: str, version: str, kind: str, structs: Structs, name: str) -> Type:
        """The type of a kind's objects. Raises `Unknown` where the server does not describe it.

        differs: upstream takes what is built in from its own code, and takes a server that does not answer for
        one that does not know. Here the server is asked for everything, and asked again until it answers.
        """
        key = group, version
        if key not in self._read:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            try:
                self._read[key] = await Consult(f"/openapi/v3/{path}")
            except NotFound:
                self._read[key] = {}
        return kind_type(self._read[key], group, version, kind, structs, name)


async def _parameters(
    policy: ValidatingAdmissionPolicy, schemas: _Schemas, structs: Structs, taken: Container[str]
) -> Type | None:
    """The type of a policy's parameters; None where it has none."""
    kind = policy.spec.paramKind
    if kind is None or kind.apiVersion.count("/") > 1:
        return None
    group, _, version = kind.apiVersion.rpartition("/")
    # differs: upstream tells types apart by a number at the end of their names that is another each time.
    name = f"{kind.kind}1" if kind.kind in taken else kind.kind
    try:
        return await schemas.type_of(group, version, kind.kind, structs, name)
    except Unknown:
        return DYN


async def _checkable(policy: ValidatingAdmissionPolicy) -> tuple[Matched, ...]:
    """What a policy matches, and what its expressions may speak of then."""
    resources = matched(policy, await Discover())
    if not resources:
        return ()
    schemas, shared = _Schemas(), Structs()
    params = await _parameters(policy, schemas, shared, [one.kind for one in resources])
    variables = [(one.name, one.expression) for one in policy.spec.variables]
    found: list[Matched] = []
    for one in resources:
        structs = shared.copy()
        try:
            obj = await schemas.type_of(one.group, one.version, one.kind, structs, one.kind)
        except Unknown:
            continue
        known = with_variables(environment(structs, obj, params), variables)
        found.append(Matched(one.group, one.version, one.kind, known))
    return tuple(found)


async def decide(policy: ValidatingAdmissionPolicy, now: datetime) -> Verdict:
    if not behind(policy):
        return Rest("checked already")
    kinds = await _checkable(policy)
    wrong = [
        {"fieldRef": field, "warning": warning} for field, warning in warnings(_expressions(policy), kinds)
    ]
    body = {
        "apiVersion": VALIDATINGADMISSIONPOLICIES.api_version,
        "kind": VALIDATINGADMISSIONPOLICIES.name,
        "metadata": {"name": policy.metadata.name},
        "status": {
            "observedGeneration": policy.metadata.generation,
            "typeChecking": {"expressionWarnings": wrong} if wrong else {},
        },
    }
    try:
        await Patch(policy, body, PatchType.APPLY, subresource="status", manager=MANAGER, force=True)
    except NotFound:
        return Rest("already gone")
    return Rest(f"checked with {len(kinds)} kinds: {len(wrong)} warnings")


controller = Controller(
    name="validatingadmissionpolicy-status-controller",
    watches=(Watch(VALIDATINGADMISSIONPOLICIES, when=behind),),
    workers=WORKERS,
    decide=decide,
)
