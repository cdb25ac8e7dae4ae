"""Compiles the expressions of admission policies and the match conditions of webhooks, as Kubernetes 1.36 declares their variables.

All expressions of one policy share a frame: the values of `VARIABLES`, then those of the policy's own variables, which are
computed when first used.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from steersman.api.cel.checker import Checked, checked
from steersman.api.cel.environment import Environment, Fields, Structs
from steersman.api.cel.errors import CelError
from steersman.api.cel.libraries import JSON_PATCH, LIBRARY, RESOURCE_CHECK, TYPE_NAMES
from steersman.api.cel.policies import environment
from steersman.api.cel.program import Program, compile_program
from steersman.api.cel.signatures import merged
from steersman.api.cel.types import BOOL, DYN, NULL, STRING, Sort, Type, list_of, struct, type_of

VARIABLES = (
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "authorizer",
    "authorizer.requestResource",
)
"""The variables of expressions, in the order of their values."""
OBJECT, PATCH = struct("Object"), struct("JSONPatch")
_COMPOSED = "kubernetes.variables"

CONDITION = (BOOL,)
MESSAGE = (STRING,)
ANNOTATION = (STRING, NULL)
JSON_PATCHES = (list_of(PATCH),)
APPLY_CONFIGURATION = (OBJECT,)


class _AnyField(dict[str, Type]):
    """The fields of ``Object`` types: each name is one, of any type."""

    def get(self, key: str, default: object = None) -> Type:
        return DYN


class _PatchFields(dict[str, Type]):
    """The fields of ``JSONPatch``. Any other has a type without a name, as upstream."""

    def get(self, key: str, default: object = None) -> Type:
        return super().get(key) or struct("")


_PATCH_FIELDS = _PatchFields({"op": STRING, "path": STRING, "from": STRING, "value": DYN})


class _PatchStructs(Structs):
    """Structs with ``Object``, ``Object.spec`` … and ``JSONPatch``."""

    def fields(self, name: str) -> Fields | None:
        if name == PATCH.name:
            return _PATCH_FIELDS
        return _AnyField() if _is_object(name) else super().fields(name)


class _PatchNames(dict[str, Type]):
    """Type names with those of patches, of which there are any number."""

    def get(self, key: str, default: object = None) -> Type | None:  # type: ignore[override]
        if key == PATCH.name or _is_object(key):
            return type_of(struct(key))
        return super().get(key)


def _is_object(name: str) -> bool:
    return name == OBJECT.name or name.startswith(f"{OBJECT.name}.")


@cache
def policy_environment(*, params: bool, authorizer: bool, patches: bool = False) -> Environment:
    """The environment of expressions whose objects may be of any kind."""
    base = environment(Structs(), DYN, DYN if params else None)
    variables = dict(base.variables)
    if authorizer:
        variables["authorizer.requestResource"] = RESOURCE_CHECK
    else:
        del variables["authorizer"]
    structs, functions, types = base.structs, base.functions, base.types
    if patches:
        structs = _PatchStructs()
        structs.include(base.structs)
        functions, types = merged(LIBRARY, JSON_PATCH), _PatchNames(base.types)
    return Environment(variables, structs, functions, types)


class Compiled(NamedTuple):
    """A compiled expression, or why it could not be compiled."""

    source: str
    program: Program | None = None
    error: str = ""
    type: Type = DYN
    name: str = ""
    """The name of a variable."""


class Composition:
    """The variables of one policy, and the environments of its expressions with those declared so far."""

    def __init__(self, *, declares: bool = True) -> None:
        """``declares`` is whether expressions know ``variables``, also where none is declared yet."""
        self._declares = declares
        self._fields: dict[str, Type] = {}
        self._places: dict[str, int] = {}
        self.variables: list[Compiled] = []

    def declare(self, name: str, source: str, base: Environment) -> Compiled:
        """Compiles a variable, which may refer to those before it. One with an error is of any type."""
        compiled = self.compile(source, base, None)._replace(name=name)
        self._places[name] = 2 + len(VARIABLES) + len(self.variables)
        self._fields[name] = _plain(compiled.type)
        self.variables.append(compiled)
        return compiled

    def compile(self, source: str, base: Environment, returns: tuple[Type, ...] | None) -> Compiled:
        """Compiles an expression that has to have one of some types."""
        known = self._composed(base) if self._declares else base
        try:
            found = checked(source, known)
        except CelError as error:
            return Compiled(source, error=f"compilation failed: {error}")
        if returns is not None and found.type not in returns:
            return Compiled(source, error=_mismatch(returns, found.type))
        return Compiled(source, self._program(found), type=found.type)

    def _composed(self, base: Environment) -> Environment:
        structs = base.structs
        if isinstance(structs, _PatchStructs):
            wider: Structs = _PatchStructs()
            wider.include(structs)
        else:
            wider = structs.copy()
        composed = wider.add(_COMPOSED, self._fields)
        return Environment({**base.variables, "variables": composed}, wider, base.functions, base.types)

    def _program(self, found: Checked) -> Program:
        return compile_program(
            found.expr, VARIABLES, found.types, type_names=TYPE_NAMES, composed=dict(self._places)
        )


def _mismatch(returns: Iterable[Type], found: Type) -> str:
    wanted = tuple(map(_type_text, returns))
    if len(wanted) == 1:
        return f"must evaluate to {wanted[0]} but got {_type_text(found)}"
    return f"must evaluate to one of [{' '.join(wanted)}] but got {_type_text(found)}"


def _type_text(type_: Type) -> str:
    """A type as cel-go prints it."""
    if type_.of:
        return f"{type_.name}({', '.join(map(_type_text, type_.of))})"
    return type_.name


def _plain(type_: Type) -> Type:
    """The type of a variable as later expressions see it: what is no plain value may be anything."""
    match type_.sort:
        case Sort.LIST | Sort.MAP:
            return Type(type_.sort, type_.name, tuple(map(_plain, type_.of)))
        case Sort.STRUCT | Sort.OPAQUE | Sort.TYPE | Sort.PARAMETER | Sort.ERROR:
            return DYN
    return type_


def expression_error(source: str, base: Environment, returns: tuple[Type, ...]) -> str:
    """The error of an expression that uses no variables of a policy; empty if it has none."""
    return Composition(declares=False).compile(source, base, returns).error
