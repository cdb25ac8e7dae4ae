"""Type checker: checks the expressions of a policy against the OpenAPI schemas of the kinds it matches."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from steersman.api.cel.environment import Structs
from steersman.api.cel.policies import MatchedKind, environment, warnings, with_variables
from steersman.api.cel.schemas import UnknownKind, kind_type
from steersman.api.cel.types import DYN, Type
from steersman.api.discovery import ApiResource
from steersman.api.errors import NotFound
from steersman.api.kinds.admission import ValidatingAdmissionPolicySpec
from steersman.intent.actions import ReadDocument


def _expressions(spec: ValidatingAdmissionPolicySpec) -> Iterator[tuple[str, str]]:
    """The expressions of a policy, each with the path of its field."""
    for index, validation in enumerate(spec.validations):
        yield f"spec.validations[{index}].expression", validation.expression
        if validation.messageExpression:
            yield f"spec.validations[{index}].messageExpression", validation.messageExpression


class _OpenApi:
    """The server's OpenAPI documents, each read once in a round."""

    def __init__(self) -> None:
        self._documents: dict[tuple[str, str], dict[str, Any]] = {}

    async def type_of(self, group: str, version: str, kind: str, structs: Structs, name: str) -> Type:
        """The type of a kind's objects. Raises `UnknownKind` for a kind without a schema."""
        # differs: upstream has the schemas of built-in kinds in its code, and takes an error of the server for a
        # missing schema. Here all schemas come from the server, and an error fails the round.
        key = group, version
        if key not in self._documents:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            try:
                self._documents[key] = await ReadDocument(f"/openapi/v3/{path}")
            except NotFound:
                self._documents[key] = {}
        return kind_type(self._documents[key], group, version, kind, structs, name)


async def _param_type(
    spec: ValidatingAdmissionPolicySpec, openapi: _OpenApi, structs: Structs, taken: Container[str]
) -> Type | None:
    """The type of a policy's parameters; None without a paramKind."""
    kind = spec.paramKind
    if kind is None or kind.apiVersion.count("/") > 1:
        return None
    group, _, version = kind.apiVersion.rpartition("/")
    # differs: upstream distinguishes types of one name by a suffix that is different each time.
    name = f"{kind.kind}1" if kind.kind in taken else kind.kind
    try:
        return await openapi.type_of(group, version, kind.kind, structs, name)
    except UnknownKind:
        return DYN


async def _environments(
    spec: ValidatingAdmissionPolicySpec, resources: Sequence[ApiResource]
) -> tuple[MatchedKind, ...]:
    """The matched kinds that have a schema, each with the CEL environment of its expressions."""
    openapi, shared = _OpenApi(), Structs()
    params = await _param_type(spec, openapi, shared, [one.kind for one in resources])
    variables = [(one.name, one.expression) for one in spec.variables]
    found: list[MatchedKind] = []
    for one in resources:
        structs = shared.copy()
        try:
            obj = await openapi.type_of(one.group, one.version, one.kind, structs, one.kind)
        except UnknownKind:
            continue
        declared = with_variables(environment(structs, obj, params), variables)
        found.append(MatchedKind(one.group, one.version, one.kind, declared))
    return tuple(found)


async def check_types(
    spec: ValidatingAdmissionPolicySpec, resources: Sequence[ApiResource]
) -> tuple[tuple[str, str], ...]:
    """The warnings of all expressions, each with the path of its field."""
    if not resources:
        return ()
    return tuple(warnings(_expressions(spec), await _environments(spec, resources)))
