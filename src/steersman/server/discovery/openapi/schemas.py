"""Schemas of the built-in kinds, derived from their structs.

The structs have names, types and merge strategies; `steersman.server.discovery.openapi.facts` adds the rest. A
`Dialect` holds the differences between OpenAPI v2 and v3.

differs: there are defaults for list keys only, and descriptions of most kinds only with the package kubernetes-validate
(`descriptions`).
"""

from __future__ import annotations

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
from steersman.server.codec.convert import is_micro_time
from steersman.server.discovery.openapi import facts
from steersman.server.discovery.openapi.descriptions import describe

Document: TypeAlias = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_PACKAGES = {
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
# Kinds that every group has.
_COMMON_KINDS = (DELETE_OPTIONS, f"{META}.WatchEvent")


class Dialect(msgspec.Struct, frozen=True):
    """A version of OpenAPI: how it writes references and scalars of several types."""

    version: int
    prefix: str
    """The prefix of references to definitions."""

    def ref(self, name: str, **siblings: Any) -> Document:
        """A reference. A v3 reference has no siblings, so they go one level up, beside ``allOf``."""
        result = {"$ref": f"{self.prefix}{name}"}
        return {"allOf": [result], **siblings} if siblings and self.version == 3 else {**result, **siblings}

    def either(self, v2: Document, *types: str) -> Document:
        """A scalar of one of several types, which v2 cannot express."""
        if self.version == 2:
            return v2
        format_field = {"format": v2["format"]} if "format" in v2 else {}
        return {**format_field, "oneOf": [{"type": item} for item in types]}


V2 = Dialect(2, "#/definitions/")
V3 = Dialect(3, "#/components/schemas/")


# -- names ------------------------------------------------------------------------------------


def package_of(module: str) -> str:
    """``core_v1`` -> ``io.k8s.api.core.v1``."""
    return _PACKAGES.get(module) or f"io.k8s.api.{module.replace('_', '.')}"


def definition_of(struct: type[Struct]) -> str:
    """The name of a struct's definition: ``io.k8s.api.core.v1.Pod``."""
    module = struct.__module__.rpartition(".")[2]
    return f"{package_of(module)}.{_struct_name(struct)}"


def _struct_name(struct: type[Struct]) -> str:
    # A kind embedded in another has its own struct, with apiVersion and kind.
    return struct.__name__.removeprefix("Nested")


def _fact_name(struct: type[Struct]) -> str:
    return f"{struct.__module__.rpartition('.')[2]}.{_struct_name(struct)}"


def kind_name(module: str, kind: str) -> str:
    """The name of the definition of a kind."""
    return f"{package_of(module)}.{kind}"


def gvk(group: str, version: str, kind: str) -> dict[str, str]:
    """A value of ``x-kubernetes-group-version-kind``."""
    return {"group": group, "kind": kind, "version": version}


@cache
def _body_modules() -> Mapping[tuple[str, str, str], str]:
    from steersman.api.generated.table import BODIES

    return BODIES


@cache
def structs() -> Mapping[str, type[Struct]]:
    """Every struct of the API by the name of its definition."""
    modules = dict.fromkeys([*(row.module for row in resources()), *_body_modules().values(), "meta_v1"])
    result: dict[str, type[Struct]] = {}
    for name in modules:
        module = import_module(f"steersman.api.generated.{name}")
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Struct) and item.__module__ == module.__name__:
                result.setdefault(definition_of(item), item)
    # The base struct of all kinds is no definition upstream.
    del result[f"{META}.Object"]
    return result


@cache
def _kinds() -> Mapping[str, list[dict[str, str]]]:
    """The group version kinds of each definition."""
    result = {kind_name(row.module, row.kind): [gvk(row.group, row.version, row.kind)] for row in resources()}
    versions = sorted({(row.group, row.version) for row in resources()})
    for (group, version, kind), module in _body_modules().items():
        name = kind_name(module, kind)
        common = versions if name in _COMMON_KINDS else [(group, version)]
        result[name] = [gvk(*item, kind) for item in common]
    return result


# -- definitions ------------------------------------------------------------------------------


@cache
def definitions(dialect: Dialect) -> Mapping[str, Document]:
    """All built-in definitions by name, sorted."""
    result = {name: _definition(dialect, name, struct) for name, struct in structs().items()}
    result |= {
        f"{kind_name(row.module, row.kind)}List": list_definition(
            dialect, kind_name(row.module, row.kind), gvk(row.group, row.version, f"{row.kind}List")
        )
        for row in resources()
        if "list" in row.verbs
    }
    result |= _scalar_definitions(dialect)
    return describe({name: result[name] for name in sorted(result)}, dialect.version)


def _scalar_definitions(dialect: Dialect) -> dict[str, Document]:
    date_time = {"type": "string", "format": "date-time"}
    int_or_string = {"type": "string", "format": "int-or-string"}
    choices = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
    return {
        _TIME: date_time,
        _MICRO_TIME: date_time,
        _FIELDS: {"type": "object"},
        PATCH: {"type": "object"},
        _RAW: {"type": "object"},
        _QUANTITY: dialect.either({"type": "string"}, "string", "number"),
        _INT_OR_STRING: dialect.either(int_or_string, "integer", "string"),
        _JSON: {},
        **{f"{_EXTENSIONS}.{choice}": {} for choice in choices},
    }


def list_definition(dialect: Dialect, item: str, kind: dict[str, str]) -> Document:
    """The definition of the list of a kind."""
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
        field.name: _property_schema(dialect, struct, owner, field) for field in fields_of(struct).values()
    }
    # A WatchEvent has a group version kind, but no apiVersion and kind fields.
    if kinds and name != f"{META}.WatchEvent":
        properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    result: Document = {"type": "object"}
    if required := facts.required_fields(owner):
        result["required"] = list(required)
    if properties:
        result["properties"] = {key: properties[key] for key in sorted(properties)}
    if kinds:
        result["x-kubernetes-group-version-kind"] = kinds
    if issubclass(struct, Atomic):
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _property_schema(dialect: Dialect, struct: type[Struct], owner: str, field: Field) -> Document:
    siblings = _merge_extensions(field)
    if field.shape == "object":
        assert field.struct is not None
        return dialect.ref(definition_of(field.struct), **siblings)
    if field.shape == "list":
        return {
            "type": "array",
            "items": _item_schema(dialect, owner, field, get_args(field.type)[0]),
            **siblings,
        }
    if field.shape == "map":
        values = _item_schema(dialect, owner, field, get_args(field.type)[1])
        return {"type": "object", "additionalProperties": values, **siblings}
    if field.type is datetime:
        return dialect.ref(_MICRO_TIME if is_micro_time(struct, field.attribute) else _TIME, **siblings)
    result = _value_schema(dialect, owner, field, field.type)
    default = _KEY_DEFAULTS.get(f"{owner}.{field.name}")
    if default is not None and dialect.version == 3:
        result["default"] = default
    return {**result, **siblings}


# Client and server need the same default for an omitted part of a list key.
_KEY_DEFAULTS = {
    "core_v1.ContainerPort.protocol": "TCP",
    "core_v1.ServicePort.protocol": "TCP",
}


def _item_schema(dialect: Dialect, owner: str, field: Field, type_: Any) -> Document:
    """The schema of the items of a list or a map."""
    type_ = _without_none(type_)
    if field.struct is not None:
        return dialect.ref(definition_of(field.struct))
    if get_origin(type_) is tuple:
        return {"type": "array", "items": _item_schema(dialect, owner, field, get_args(type_)[0])}
    return _value_schema(dialect, owner, field, type_)


def _value_schema(dialect: Dialect, owner: str, field: Field, type_: Any) -> Document:
    """The schema of a scalar, a union, or any value."""
    types = frozenset(get_args(type_)) if get_origin(type_) in (Union, UnionType) else frozenset()
    if type_ is str:
        result: Document = {"type": "string"}
        if facts.is_bytes(owner, field.name):
            result["format"] = "byte"
        if enum := facts.enum_values(owner, field.name):
            result["enum"] = list(enum)
        return result
    if type_ is int:
        return {"type": "integer", "format": "int64" if facts.is_int64(owner, field.name) else "int32"}
    if type_ is bool:
        return {"type": "boolean"}
    if type_ is datetime:
        return dialect.ref(_TIME)
    if types == {int, float}:
        return {"type": "number", "format": "double"}
    if types == {int, str}:
        return dialect.ref(_INT_OR_STRING)
    if types == {int, float, str}:
        return dialect.ref(_QUANTITY)
    if types:
        return dialect.ref(f"{_EXTENSIONS}.{_json_schema_choice(types)}")
    if type_ is Any:
        if owner.startswith("apiextensions_v1."):
            return dialect.ref(_JSON)
        return dialect.ref(_FIELDS if field.name == "fieldsV1" else _RAW)
    raise TypeError(f"{owner}.{field.name} has no OpenAPI type: {type_}")


def _json_schema_choice(types: Iterable[Any]) -> str:
    """The name of a union type of JSON schemas."""
    others = [
        type_arm for type_arm in types if not (isinstance(type_arm, type) and issubclass(type_arm, Struct))
    ]
    if others == [bool]:
        return "JSONSchemaPropsOrBool"
    return "JSONSchemaPropsOrStringArray" if get_args(others[0])[0] is str else "JSONSchemaPropsOrArray"


def _without_none(type_: Any) -> Any:
    if get_origin(type_) in (Union, UnionType):
        rest = tuple(type_arm for type_arm in get_args(type_) if type_arm is not NoneType)
        return rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007  # made at run time
    return type_


def _merge_extensions(field: Field) -> Document:
    """The OpenAPI extensions for how a field merges."""
    merge = field.merge or Merge()
    # An atomic struct has the extension in its own definition.
    implied = field.struct is not None and field.shape == "object" and issubclass(field.struct, Atomic)
    extensions = {
        "x-kubernetes-list-map-keys": list(merge.keys),
        "x-kubernetes-list-type": merge.list_type,
        "x-kubernetes-map-type": "" if implied and merge.map_type == "atomic" else merge.map_type,
        "x-kubernetes-patch-merge-key": merge.key,
        "x-kubernetes-patch-strategy": merge.strategy,
    }
    return {name: value for name, value in extensions.items() if value}


# -- references -------------------------------------------------------------------------------


def references(value: Any) -> list[str]:
    """The names of the definitions that a document refers to, with duplicates."""
    result: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            ref = item.get("$ref")
            if isinstance(ref, str):
                result.append(ref.rpartition("/")[2])
            stack += item.values()
        elif isinstance(item, (list, tuple)):
            stack += item
    return result


@cache
def _references_of(dialect: Dialect, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(references(definitions(dialect).get(name, {}))))


def reachable(dialect: Dialect, names: Iterable[str]) -> dict[str, Document]:
    """The built-in definitions reachable from names, sorted. Other names are ignored."""
    all_definitions = definitions(dialect)
    seen: dict[str, None] = {}
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in all_definitions and name not in seen:
            seen[name] = None
            stack += _references_of(dialect, name)
    return {name: all_definitions[name] for name in sorted(seen)}
