"""Write ``steersman/server/codec/protobuf/fields.json``: what the numbers in protobuf bodies stand for.

    python tools/generate_protobuf.py DIRECTORY

The directory is searched for the ``generated.proto`` files of Kubernetes (those of ``k8s.io/api``,
``apimachinery``, ``apiextensions-apiserver`` and ``kube-aggregator``). Only what can be part of a request is
taken: the kinds of `steersman.api.generated`, and whatever those are made of. A message becomes::

    "apps_v1.DeploymentSpec": {"1": ["replicas", "int32"], "2": ["selector", "meta_v1.LabelSelector"], ...}

A third item says what is special about a field, by letters: ``r`` repeated, ``m`` a map with text keys,
``i`` a message whose fields are those of the outer one in JSON, ``z`` left out of JSON where it is zero (in
protobuf it is written all the same). Which fields those are is read off the generated structs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec

from steersman.api.generated import resources
from steersman.api.generated.table import BODIES

OUT = Path(__file__).parent.parent / "src" / "steersman" / "server" / "protobuf" / "fields.json"

SPECIAL = {
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "time",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "json",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "json",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON": "json",
}
"""Messages that are no objects in JSON, and what they are called in the file."""

EITHER = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray", "ExtraValue")
"""Messages that are one of their fields in JSON; the reader knows them by name."""

SCALARS = ("string", "bytes", "bool", "int32", "int64", "double")

_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^\s*(optional|repeated|map<string,)\s*([\w.]+)>?\s+(\w+)\s*=\s*(\d+);", re.M)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


class Field(NamedTuple):
    """A field as the definitions give it; its type by its full name."""

    number: int
    name: str
    type: str
    rule: str


class Known(NamedTuple):
    """What the structs tell of a JSON field."""

    name: str
    drops_zero: bool


Messages = Mapping[str, list[Field]]


def parsed(text: str) -> Iterator[tuple[str, list[Field]]]:
    """The messages of one file, by their full names."""
    text = _COMMENT.sub("", text)
    found = re.search(r"^package ([\w.]+);", text, re.M)
    package = found[1] if found else ""
    for name, body in _MESSAGE.findall(text):
        fields = [
            Field(int(number), field, _full(package, type_), rule)
            for rule, type_, field, number in _FIELD.findall(body)
        ]
        if len(fields) != body.count(";"):
            sys.exit(f"{package}.{name} has fields of a sort that is not understood")
        yield f"{package}.{name}", fields


def _full(package: str, type_: str) -> str:
    if type_.startswith("."):
        return type_[1:]
    return type_ if type_ in SCALARS else f"{package}.{type_}"


def short(name: str) -> str:
    """``k8s.io.api.apps.v1.Deployment`` as ``apps_v1.Deployment``."""
    group, version, message = name.split(".")[-3:]
    return f"{group}_{version}.{message}"


def known(name: str) -> dict[str, Known] | None:
    """The JSON fields of a message, by name in small letters; None where no struct tells."""
    module, _, message = short(name).partition(".")
    try:
        struct = getattr(import_module(f"steersman.api.generated.{module}"), message, None)
    except ImportError:
        return None
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return None
    return {
        _plain(field.encode_name): Known(
            field.encode_name, type(field.default) in (str, int, bool) and not field.default
        )
        for field in msgspec.structs.fields(struct)
    }


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def rows(
    name: str, messages: Messages, outer: Mapping[str, Known] | None
) -> Iterator[tuple[Field, list[object]]]:
    """The fields of a message with what is written of each.

    ``outer`` are the JSON fields of the message this one is a part of, where it has none of its own.
    """
    fields = known(name)
    own = fields if fields is not None else outer
    for field in messages[name]:
        told = own.get(_plain(field.name)) if own is not None else None
        flags = {"optional": "", "repeated": "r", "map<string,": "m"}[field.rule]
        told_name = field.name
        if told is not None:
            told_name = told.name
            if told.drops_zero and not flags and field.type in SCALARS:
                flags = "z"
        elif own is not None and not short_scalar(field) and not flags:
            flags = "i"
        elif own is not None and name.rpartition(".")[2] not in EITHER:
            print(f"no JSON field for {short(name)}.{field.name}", file=sys.stderr)
        type_ = field.type if field.type in SCALARS else SPECIAL.get(field.type) or short(field.type)
        yield field, [told_name, type_, flags] if flags else [told_name, type_]


def short_scalar(field: Field) -> bool:
    """Whether a field is a single value in JSON."""
    return field.type in SCALARS or field.type in SPECIAL


def table(messages: Messages) -> dict[str, dict[str, list[object]]]:
    """All that can be reached from the kinds."""
    by_short = {short(name): name for name in sorted(messages) if "_v" in short(name)}
    roots = sorted({f"{each.module}.{each.kind}" for each in resources()})
    roots += sorted(f"{module}.{kind}" for (_, _, kind), module in BODIES.items())
    roots.append("meta_v1.DeleteOptions")
    made: dict[str, dict[str, list[object]]] = {}
    todo: list[tuple[str, Mapping[str, Known] | None]] = []
    for root in roots:
        if root in by_short:
            todo.append((by_short[root], None))
        else:
            print(f"no message for {root}", file=sys.stderr)
    while todo:
        name, outer = todo.pop()
        if short(name) in made:
            continue
        entry = made[short(name)] = {}
        for field, row in rows(name, messages, outer):
            entry[str(field.number)] = row
            if not short_scalar(field):
                todo.append((field.type, (known(name) or outer) if "i" in row[2:] else None))
    return {name: made[name] for name in sorted(made)}


def main() -> None:
    """Read the definitions and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    messages: dict[str, list[Field]] = {}
    for path in sorted(parser.parse_args().directory.rglob("generated.proto")):
        messages.update(parsed(path.read_text()))
    OUT.write_text(json.dumps(table(messages), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
