"""Definitions of the built-in kinds, derived from their structs.

The structs know names, types and merging; `steersman.server.discovery.openapi.facts` adds what types cannot say.
OpenAPI v2 and v3 write references and a few scalars differently: a `Dialect` knows how.

differs: there are no descriptions and no defaults but those of list keys, so ``kubectl explain`` shows
fields and types without prose.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

import msgspec

from steersman.api.generated import resources
from steersman.api.generated.base import Atomic
from steersman.api.generated.merge import Field, Merge, fields_of
from steersman.api.kinds import Struct
from steersman.server.discovery.openapi import facts

Document: TypeAlias = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_HOMES = {
    "meta_v1": META,
    "apiextensions_v1": _EXTENSIONS,
    "apiregistration_v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
}
_TIME = f"{META}.Time"
_MICRO_TIME = f"{META}.MicroTime"
_FIELDS = f"{META}.FieldsV1"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_JSON = f"{_EXTENSIONS}.JSON"

STATUS = f"{META}.Status"
PATCH = f"{META}.Patch"
OBJECT_META = f"{META}.ObjectMeta"
LIST_META = f"{META}.ListMeta"
DELETE_OPTIONS = f"{META}.DeleteOptions"
# These belong to every group.
_COMMON = (DELETE_OPTIONS, f"{META}.WatchEvent")


class Dialect(msgspec.Struct, frozen=True):
    """A version of OpenAPI."""

    version: int
    prefix: str
    """Where definitions are referred to."""

    def ref(self, name: str, **beside: Any) -> Document:
        """A reference. In v3 nothing may stand beside it, so what does goes one level up."""
        found = {"$ref": f"{self.prefix}{name}"}
        return {"allOf": [found], **beside} if beside and self.version == 3 else {**found, **beside}

    def either(self, v2: Document, *types: str) -> Document:
        """A scalar of one of several types, which v2 cannot say."""
        if self.version == 2:
            return v2
        told = {"format": v2["format"]} if "format" in v2 else {}
        return {**told, "oneOf": [{"type": each} for each in types]}


V2 = Dialect(2, "#/definitions/")
V3 = Dialect(3, "#/components/schemas/")


# -- names ------------------------------------------------------------------------------------


def home_of(module: str) -> str:
    """``core_v1`` -> ``io.k8s.api.core.v1``."""
    return _HOMES.get(module) or f"io.k8s.api.{module.replace('_', '.')}"


def name_of(struct: type[Struct]) -> str:
    """The name of a struct's definition: ``io.k8s.api.core.v1.Pod``."""
    module = struct.__module__.rpartition(".")[2]
    return f"{home_of(module)}.{_bare_name(struct)}"


def _bare_name(struct: type[Struct]) -> str:
    # A kind that stands inside another has a struct of its own, which knows its apiVersion.
    return struct.__name__.removeprefix("Nested")


def _fact_name(struct: type[Struct]) -> str:
    return f"{struct.__module__.rpartition('.')[2]}.{_bare_name(struct)}"


def kind_name(module: str, kind: str) -> str:
    """The definition of a kind of a module."""
    return f"{home_of(module)}.{kind}"


def gvk(group: str, version: str, kind: str) -> dict[str, str]:
    """``x-kubernetes-group-version-kind``, as definitions and operations carry it."""
    return {"group": group, "kind": kind, "version": version}


@cache
def _bodies() -> Mapping[tuple[str, str, str], str]:
    from steersman.api.generated.table import BODIES

    return BODIES


@cache
def structs() -> Mapping[str, type[Struct]]:
    """Every struct of the API by the name of its definition."""
    modules = dict.fromkeys([*(row.module for row in resources()), *_bodies().values(), "meta_v1"])
    found: dict[str, type[Struct]] = {}
    for name in modules:
        module = import_module(f"steersman.api.generated.{name}")
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Struct) and each.__module__ == module.__name__:
                found.setdefault(name_of(each), each)
    # The base of all kinds is ours alone.
    del found[f"{META}.Object"]
    return found


@cache
def _kinds() -> Mapping[str, list[dict[str, str]]]:
    """The kinds that definitions stand for."""
    found = {kind_name(row.module, row.kind): [gvk(row.group, row.version, row.kind)] for row in resources()}
    versions = sorted({(row.group, row.version) for row in resources()})
    for (group, version, kind), module in _bodies().items():
        name = kind_name(module, kind)
        common = versions if name in _COMMON else [(group, version)]
        found[name] = [gvk(*each, kind) for each in common]
    return found


# -- definitions ------------------------------------------------------------------------------


@cache
def definitions(dialect: Dialect) -> Mapping[str, Document]:
    """Every definition of what is built in, by name, in the order of names."""
    found = {name: _definition(dialect, name, struct) for name, struct in structs().items()}
    found |= {
        f"{kind_name(row.module, row.kind)}List": list_definition(
            dialect, kind_name(row.module, row.kind), gvk(row.group, row.version, f"{row.kind}List")
        )
        for row in resources()
        if "list" in row.verbs
    }
    found |= _scalars(dialect)
    return {name: found[name] for name in sorted(found)}


def _scalars(dialect: Dialect) -> dict[str, Document]:
    instant = {"type": "string", "format": "date-time"}
    either = {"type": "string", "format": "int-or-string"}
    choices = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
    return {
        _TIME: instant,
        _MICRO_TIME: instant,
        _FIELDS: {"type": "object"},
        PATCH: {"type": "object"},
        _RAW: {"type": "object"},
        _QUANTITY: dialect.either({"type": "string"}, "string", "number"),
        _INT_OR_STRING: dialect.either(either, "integer", "string"),
        _JSON: {},
        **{f"{_EXTENSIONS}.{choice}": {} for choice in choices},
    }


def list_definition(dialect: Dialect, item: str, kind: dict[str, str]) -> Document:
    """The definition of a list of some kind."""
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": dialect.ref(item)},
            "kind": {"type": "string"},
            "metadata": dialect.ref(LIST_META),
        },
        "x-kubernetes-group-version-kind": [kind],
    }


def _definition(dialect: Dialect, name: str, struct: type[Struct]) -> Document:
    owner, kinds = _fact_name(struct), _kinds().get(name)
    properties = {
        field.name: _property(dialect, struct, owner, field) for field in fields_of(struct).values()
    }
    # An event on a watch is no object, although it has a kind.
    if kinds and name != f"{META}.WatchEvent":
        properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    found: Document = {"type": "object"}
    if required := facts.required(owner):
        found["required"] = list(required)
    if properties:
        found["properties"] = {key: properties[key] for key in sorted(properties)}
    if kinds:
        found["x-kubernetes-group-version-kind"] = kinds
    if issubclass(struct, Atomic):
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _property(dialect: Dialect, struct: type[Struct], owner: str, field: Field) -> Document:
    beside = _merging(field)
    if field.shape == "object":
        assert field.struct is not None
        return dialect.ref(name_of(field.struct), **beside)
    if field.shape == "list":
        return {"type": "array", "items": _item(dialect, owner, field, get_args(field.type)[0]), **beside}
    if field.shape == "map":
        values = _item(dialect, owner, field, get_args(field.type)[1])
        return {"type": "object", "additionalProperties": values, **beside}
    if field.type is datetime:
        return dialect.ref(_MICRO_TIME if _is_micro(struct, field) else _TIME, **beside)
    found = _value(dialect, owner, field, field.type)
    default = _KEY_DEFAULTS.get(f"{owner}.{field.name}")
    if default is not None and dialect.version == 3:
        found["default"] = default
    return {**found, **beside}


# Where a part of a list's key may be left out, both sides must know what it counts as.
_KEY_DEFAULTS = {
    "core_v1.ContainerPort.protocol": "TCP",
    "core_v1.ServicePort.protocol": "TCP",
}


def _item(dialect: Dialect, owner: str, field: Field, type_: Any) -> Document:
    """What a list or a map has in it."""
    type_ = _without_none(type_)
    if field.struct is not None:
        return dialect.ref(name_of(field.struct))
    if get_origin(type_) is tuple:
        return {"type": "array", "items": _item(dialect, owner, field, get_args(type_)[0])}
    return _value(dialect, owner, field, type_)


def _value(dialect: Dialect, owner: str, field: Field, type_: Any) -> Document:
    """A scalar, a choice of several, or anything."""
    arms = frozenset(get_args(type_)) if get_origin(type_) in (Union, UnionType) else frozenset()
    if type_ is str:
        found: Document = {"type": "string"}
        if facts.is_bytes(owner, field.name):
            found["format"] = "byte"
        if words := facts.words(owner, field.name):
            found["enum"] = list(words)
        return found
    if type_ is int:
        return {"type": "integer", "format": "int64" if facts.is_long(owner, field.name) else "int32"}
    if type_ is bool:
        return {"type": "boolean"}
    if type_ is datetime:
        return dialect.ref(_TIME)
    if arms == {int, float}:
        return {"type": "number", "format": "double"}
    if arms == {int, str}:
        return dialect.ref(_INT_OR_STRING)
    if arms == {int, float, str}:
        return dialect.ref(_QUANTITY)
    if arms:
        return dialect.ref(f"{_EXTENSIONS}.{_choice(arms)}")
    if type_ is Any:
        if owner.startswith("apiextensions_v1."):
            return dialect.ref(_JSON)
        return dialect.ref(_FIELDS if field.name == "fieldsV1" else _RAW)
    raise TypeError(f"{owner}.{field.name} has no OpenAPI type: {type_}")


def _choice(arms: Iterable[Any]) -> str:
    """Which of the choices of JSON schemas this is."""
    others = [arm for arm in arms if not (isinstance(arm, type) and issubclass(arm, Struct))]
    if others == [bool]:
        return "JSONSchemaPropsOrBool"
    return "JSONSchemaPropsOrStringArray" if get_args(others[0])[0] is str else "JSONSchemaPropsOrArray"


def _without_none(type_: Any) -> Any:
    if get_origin(type_) in (Union, UnionType):
        rest = tuple(arm for arm in get_args(type_) if arm is not NoneType)
        return rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007  # made at run time
    return type_


def _is_micro(struct: type[Struct], field: Field) -> bool:
    """Both sorts of instants are datetimes: only the declaration tells them apart."""
    for cls in struct.__mro__:
        note = inspect.get_annotations(cls).get(field.attribute)
        if note is not None:
            return "MicroTime" in str(note)
    return False


def _merging(field: Field) -> Document:
    """How the field merges, in the words of OpenAPI's extensions."""
    merge = field.merge or Merge()
    # A struct that is atomic wherever it stands says so in its own definition.
    implied = field.struct is not None and field.shape == "object" and issubclass(field.struct, Atomic)
    said = {
        "x-kubernetes-list-map-keys": list(merge.keys),
        "x-kubernetes-list-type": merge.list_type,
        "x-kubernetes-map-type": "" if implied and merge.map_type == "atomic" else merge.map_type,
        "x-kubernetes-patch-merge-key": merge.key,
        "x-kubernetes-patch-strategy": merge.strategy,
    }
    return {name: value for name, value in said.items() if value}


# -- what hangs together ----------------------------------------------------------------------


def references(value: Any) -> list[str]:
    """The definitions a document refers to, each as often as it does."""
    found: list[str] = []
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, Mapping):
            ref = each.get("$ref")
            if isinstance(ref, str):
                found.append(ref.rpartition("/")[2])
            todo += each.values()
        elif isinstance(each, (list, tuple)):
            todo += each
    return found


@cache
def _below(dialect: Dialect, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(references(definitions(dialect).get(name, {}))))


def reachable(dialect: Dialect, names: Iterable[str]) -> dict[str, Document]:
    """The built-in definitions that some names lead to, sorted. What is not built in is passed over."""
    known = definitions(dialect)
    seen: dict[str, None] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in known and name not in seen:
            seen[name] = None
            todo += _below(dialect, name)
    return {name: known[name] for name in sorted(seen)}
