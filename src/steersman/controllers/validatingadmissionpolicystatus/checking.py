"""What is wrong with the expressions of a policy, by the server's schemas of what it matches."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from steersman.api.cel.environment import Structs
from steersman.api.cel.policies import Matched, environment, warnings, with_variables
from steersman.api.cel.schemas import Unknown, kind_type
from steersman.api.cel.types import DYN, Type
from steersman.api.discovery import Resource
from steersman.api.errors import NotFound
from steersman.api.kinds.admission import ValidatingAdmissionPolicySpec
from steersman.intent.actions import ReadDocument


def _expressions(spec: ValidatingAdmissionPolicySpec) -> Iterator[tuple[str, str]]:
    """What is checked, by the field it is in."""
    for index, validation in enumerate(spec.validations):
        yield f"spec.validations[{index}].expression", validation.expression
        if validation.messageExpression:
            yield f"spec.validations[{index}].messageExpression", validation.messageExpression


class _Schemas:
    """The server's schemas, each document read once in a round."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], dict[str, Any]] = {}

    async def type_of(self, group: str, version: str, kind: str, structs: Structs, name: str) -> Type:
        """The type of a kind's objects. Raises `Unknown` where the server does not describe it."""
        # differs: upstream takes what is built in from its own code, and a server that does not answer for one
        # that does not know. Here the server is asked for everything, and asked again until it answers.
        key = group, version
        if key not in self._read:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            try:
                self._read[key] = await ReadDocument(f"/openapi/v3/{path}")
            except NotFound:
                self._read[key] = {}
        return kind_type(self._read[key], group, version, kind, structs, name)


async def _parameters(
    spec: ValidatingAdmissionPolicySpec, schemas: _Schemas, structs: Structs, taken: Container[str]
) -> Type | None:
    """The type of a policy's parameters; None where it has none."""
    kind = spec.paramKind
    if kind is None or kind.apiVersion.count("/") > 1:
        return None
    group, _, version = kind.apiVersion.rpartition("/")
    # differs: upstream tells types apart by a number at the end of their names that is another each time.
    name = f"{kind.kind}1" if kind.kind in taken else kind.kind
    try:
        return await schemas.type_of(group, version, kind.kind, structs, name)
    except Unknown:
        return DYN


async def _known(spec: ValidatingAdmissionPolicySpec, resources: Sequence[Resource]) -> tuple[Matched, ...]:
    """What a policy matches and the server describes, and what expressions may speak of then."""
    schemas, shared = _Schemas(), Structs()
    params = await _parameters(spec, schemas, shared, [one.kind for one in resources])
    variables = [(one.name, one.expression) for one in spec.variables]
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


async def checked(
    spec: ValidatingAdmissionPolicySpec, resources: Sequence[Resource]
) -> tuple[tuple[str, str], ...]:
    """What is wrong, by the field it is in."""
    if not resources:
        return ()
    return tuple(warnings(_expressions(spec), await _known(spec, resources)))
