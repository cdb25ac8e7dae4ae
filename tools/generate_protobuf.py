"""Writes ``steersman/server/codec/protobuf/fields.json``: the fields of protobuf messages by number.

    python tools/generate_protobuf.py DIRECTORY

The directory is searched for the ``generated.proto`` files of Kubernetes (those of ``k8s.io/api``,
``apimachinery``, ``apiextensions-apiserver`` and ``kube-aggregator``), and for the Go types beside them. Only messages
that can be part of a request or response are written: the kinds of `steersman.api.generated` and the messages they
contain. An example::

    "apps_v1.DeploymentSpec": {"1": ["replicas", "int32"], "2": ["selector", "meta_v1.LabelSelector"], ...}

An optional third item has flags: ``r`` repeated, ``m`` a map with string keys, ``i`` a message whose fields belong
to the outer message in JSON, ``z`` a field that JSON omits where it is zero and protobuf does not (both derived from
the generated structs), ``p`` a pointer in Go: Kubernetes' marshalers omit it where it is nil, while all other singular
fields are always written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec

from steersman.api.generated import gated_resources, resources
from steersman.api.generated.table import BODIES

OUT = Path(__file__).parent.parent / "src" / "steersman" / "server" / "codec" / "protobuf" / "fields.json"

VALUE_MESSAGES = {
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "time",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "json",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "json",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON": "json",
}
"""Messages that are scalars in JSON, and their types in the file."""

UNION_MESSAGES = (
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "ExtraValue",
)
"""Messages that are one of their fields in JSON; the decoder knows them by name."""

SCALARS = ("string", "bytes", "bool", "int32", "int64", "double")

_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^\s*(optional|repeated|map<string,)\s*([\w.]+)>?\s+(\w+)\s*=\s*(\d+);", re.M)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


_GO_STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
_GO_POINTER = re.compile(r"^\s*\w+\s+\*[^`\n]*`[^`\n]*protobuf:\"\w+,(\d+),", re.M)


class Field(NamedTuple):
    """A field of a ``.proto`` message, with the full name of its type."""

    number: int
    name: str
    type: str
    rule: str
    pointer: bool = False
    """Whether the field of the Go struct is a pointer."""


class JsonField(NamedTuple):
    """A JSON field, from the generated structs."""

    name: str
    drops_zero: bool


Messages = Mapping[str, list[Field]]


def parse_messages(text: str) -> Iterator[tuple[str, list[Field]]]:
    """The messages of one file, by full name."""
    text = _COMMENT.sub("", text)
    match = re.search(r"^package ([\w.]+);", text, re.M)
    package = match[1] if match else ""
    for name, body in _MESSAGE.findall(text):
        fields = [
            Field(int(number), field, _full_name(package, type_), rule)
            for rule, type_, field, number in _FIELD.findall(body)
        ]
        if len(fields) != body.count(";"):
            sys.exit(f"{package}.{name} has fields that this script cannot parse")
        yield f"{package}.{name}", fields


def with_pointers(directory: Path, found: Iterable[tuple[str, list[Field]]]) -> Messages:
    """The messages of a directory, with the pointers of its Go structs."""
    pointers: dict[str, set[int]] = {}
    for path in directory.glob("*.go"):
        if path.name != "generated.pb.go":
            for name, body in _GO_STRUCT.findall(path.read_text()):
                pointers.setdefault(name, set()).update(map(int, _GO_POINTER.findall(body)))
    return {
        name: [
            field._replace(pointer=field.number in pointers.get(name.rpartition(".")[2], ()))
            for field in fields
        ]
        for name, fields in found
    }


def _full_name(package: str, type_: str) -> str:
    if type_.startswith("."):
        return type_[1:]
    return type_ if type_ in SCALARS else f"{package}.{type_}"


def short_name(name: str) -> str:
    """``k8s.io.api.apps.v1.Deployment`` as ``apps_v1.Deployment``."""
    group, version, message = name.split(".")[-3:]
    return f"{group}_{version}.{message}"


def json_fields(name: str) -> dict[str, JsonField] | None:
    """The JSON fields of a message, by lowercase name; None where there is no struct."""
    module, _, message = short_name(name).partition(".")
    try:
        struct = getattr(import_module(f"steersman.api.generated.{module}"), message, None)
    except ImportError:
        return None
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return None
    return {
        _letters(field.encode_name): JsonField(
            field.encode_name, type(field.default) in (str, int, bool) and not field.default
        )
        for field in msgspec.structs.fields(struct)
    }


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def field_rows(
    name: str, messages: Messages, outer: Mapping[str, JsonField] | None
) -> Iterator[tuple[Field, list[object]]]:
    """The fields of a message with the row that is written for each.

    ``outer`` are the JSON fields of the message that contains this one, for a message without a struct.
    """
    fields = json_fields(name)
    candidates = fields if fields is not None else outer
    for field in messages[name]:
        json_field = candidates.get(_letters(field.name)) if candidates is not None else None
        flags = {"optional": "", "repeated": "r", "map<string,": "m"}[field.rule]
        json_name = field.name
        if json_field is not None:
            json_name = json_field.name
            if json_field.drops_zero and not flags and field.type in SCALARS:
                flags = "z"
        elif candidates is not None and not is_json_scalar(field) and not flags:
            flags = "i"
        elif candidates is not None and name.rpartition(".")[2] not in UNION_MESSAGES:
            print(f"no JSON field for {short_name(name)}.{field.name}", file=sys.stderr)
        if field.pointer:
            flags += "p"
        type_ = (
            field.type if field.type in SCALARS else VALUE_MESSAGES.get(field.type) or short_name(field.type)
        )
        yield field, [json_name, type_, flags] if flags else [json_name, type_]


def is_json_scalar(field: Field) -> bool:
    """Whether a field is a scalar in JSON."""
    return field.type in SCALARS or field.type in VALUE_MESSAGES


def field_table(messages: Messages) -> dict[str, dict[str, list[object]]]:
    """The rows of all messages that are reachable from the kinds."""
    by_short = {short_name(name): name for name in sorted(messages) if "_v" in short_name(name)}
    roots = sorted({f"{resource.module}.{resource.kind}" for resource in (*resources(), *gated_resources())})
    roots += sorted(f"{module}.{kind}" for (_, _, kind), module in BODIES.items())
    roots.append("meta_v1.DeleteOptions")
    rows_by_message: dict[str, dict[str, list[object]]] = {}
    stack: list[tuple[str, Mapping[str, JsonField] | None]] = []
    for root in roots:
        if root in by_short:
            stack.append((by_short[root], None))
        else:
            print(f"no message for {root}", file=sys.stderr)
    while stack:
        name, outer = stack.pop()
        if short_name(name) in rows_by_message:
            continue
        entry = rows_by_message[short_name(name)] = {}
        for field, row in field_rows(name, messages, outer):
            entry[str(field.number)] = row
            if not is_json_scalar(field):
                stack.append((field.type, (json_fields(name) or outer) if "i" in row[2:] else None))
    return {name: rows_by_message[name] for name in sorted(rows_by_message)}


def main() -> None:
    """Reads the ``.proto`` files and writes ``fields.json``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    messages: dict[str, list[Field]] = {}
    for path in sorted(parser.parse_args().directory.rglob("generated.proto")):
        messages.update(with_pointers(path.parent, parse_messages(path.read_text())))
    OUT.write_text(json.dumps(field_table(messages), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
