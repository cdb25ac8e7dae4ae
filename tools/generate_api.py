"""Writes `steersman.api.generated`: frozen structs for every API that Kubernetes serves by default.

    python tools/generate_api.py                                     from kubernetes-validate (dev only)
    python tools/generate_api.py --from-server swagger.json          from a file
    python tools/generate_api.py --from-server http://127.0.0.1:8001 from a live server, by kubectl proxy

Both sources give the same files for the same release. Three files beside this script have what the sources lack:
``resources.txt`` (the served resources), ``gated_resources.txt`` (those that a feature gate adds) and ``presence.txt``
(the presence of fields, see below).

**Absent, null and zero.** Encoding a decoded document gives the same document, as Kubernetes would encode it.
Every field has a default, so any document decodes. A field has one of four presences:

========  ================================  =========================  =================================
presence  in the API                        absent decodes as          omitted when encoded
========  ================================  =========================  =================================
value     omitted when empty                ``""  0  False  ()  EMPTY``  when zero
always    never omitted                     zero; an empty struct      never
pointer   omitted when not set              ``None``                   when ``None``; zero is a choice
null      never omitted, null when not set  ``None``                   never; ``None`` is ``null``
========  ================================  =========================  =================================

Fields that are always encoded get their default from a factory: msgspec omits a field when its value *is* the
default, and the result of a factory never is. The definitions only have which fields are required;
`default_presence` derives the presence from that and the type, and ``presence.txt`` lists the exceptions.

**Names** are those of the wire, with an underscore after Python's keywords (``from_``) and without the
characters that Python names cannot have (``$ref`` is ``ref``, ``x-kubernetes-map-type`` is
``xKubernetesMapType``). Kinds have no ``apiVersion`` and ``kind``. A kind that is embedded in another object (the
claim templates of a StatefulSet) is a ``Nested`` kind, which has them.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "steersman" / "api" / "generated"
RELEASE = "1.36"
NOTE = "Made by tools/generate_api.py; do not edit."

Schema: TypeAlias = Mapping[str, Any]
Definitions: TypeAlias = Mapping[str, Schema]
Presence: TypeAlias = Literal["value", "always", "pointer", "null"]
FieldType: TypeAlias = Literal["text", "number", "choice", "object", "list", "map", "open"]

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
# Definitions that are no structs: the source of the Python type, and the type of field.
SCALARS: Mapping[str, tuple[str, FieldType]] = {
    f"{META}.Time": ("Time", "open"),
    f"{META}.MicroTime": ("MicroTime", "open"),
    f"{META}.FieldsV1": ("Json", "open"),
    f"{META}.Patch": ("Json", "open"),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("Quantity", "choice"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ("Json", "open"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("IntOrString", "choice"),
    f"{EXTENSIONS}.JSON": ("Json", "open"),
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": ("JSONSchemaProps | tuple[JSONSchemaProps, ...]", "open"),
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": ("JSONSchemaProps | bool", "open"),
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": ("JSONSchemaProps | tuple[str, ...]", "open"),
}
JSON_TYPES: Mapping[str, tuple[str, FieldType]] = {
    "string": ("str", "text"),
    "integer": ("int", "number"),
    "boolean": ("bool", "number"),
    "number": ("int | float", "number"),
}
ZEROS = {"str": '""', "int": "0", "bool": "False", "list": "()", "map": "EMPTY"}
FACTORIES = {"int | float": "int", "IntOrString": "int", "Quantity": "zero", "list": "none"}
# The definitions have no defaults; these are needed since the fields are keys of lists.
KEY_DEFAULTS = {"protocol": "TCP"}
# The most frequent sets of verbs, which keep the table short.
VERBS = {"create,delete,deletecollection,get,list,patch,update,watch": "_ALL", "get,patch,update": "_CHANGE"}
# The structs that extend those of `steersman.api.kinds`, so that functions for any object accept them.
VIEWS = {f"{META}.ObjectMeta": "kinds.ObjectMeta", f"{META}.OwnerReference": "kinds.OwnerReference"}
OBJECT = """
class Object(kinds.Object, frozen=True):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
"""
NESTED = """
class Nested{name}({name}, frozen=True):
    apiVersion: str = ""
    kind: str = ""
"""


# -- resources ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """A line of ``resources.txt`` or ``gated_resources.txt``."""

    api_version: str
    path: str
    kind: str
    singular: str
    scope: str
    short_names: str
    categories: str
    verbs: str
    gate: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


def table_lines(path: Path) -> Iterator[list[str]]:
    """The words of each line of a table, without comments."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split()


def read_resources(name: str = "resources.txt") -> tuple[Row, ...]:
    return tuple(Row(*words) for words in table_lines(HERE / name))


def read_presence() -> dict[tuple[str, str], Presence]:
    """The presences in ``presence.txt``, by struct and field."""
    presence_by_field: dict[tuple[str, str], Presence] = {}
    for struct, presence, *names in table_lines(HERE / "presence.txt"):
        if presence not in get_args(Presence):
            raise SystemExit(f"presence.txt: {struct}: no such presence: {presence}")
        for name in names:
            presence_by_field[struct, name] = cast(Presence, presence)
    return presence_by_field


# -- definitions --------------------------------------------------------------------------------


def packaged_definitions() -> Definitions:
    """The definitions in kubernetes-validate."""
    spec = find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SystemExit("kubernetes-validate is not installed; it is one of the dev dependencies")
    schemas = Path(spec.origin).parent / "kubernetes-json-schema"
    document = json.loads((schemas / f"v{RELEASE}.0-local" / "_definitions.json").read_text(encoding="utf-8"))
    definitions: Definitions = document["$defs"]
    return definitions


def server_definitions(source: str) -> Definitions:
    """The definitions in a server's swagger: a file, or the server's address."""
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(f"{source.rstrip('/')}/openapi/v2", timeout=60) as response:
            document = json.load(response)
    else:
        document = json.loads(Path(source).read_text(encoding="utf-8"))
    definitions: Definitions = document["definitions"]
    return definitions


def module_of(definition: str) -> str:
    """``io.k8s.api.core.v1.Pod`` -> ``core_v1``."""
    *_, group, version, _ = definition.split(".")
    return f"{group}_{version}"


def name_of(definition: str) -> str:
    return definition.rpartition(".")[2]


def ref_of(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def json_type(schema: Schema) -> str:
    """The JSON type of a schema, without the ``null`` that kubernetes-validate adds to optional fields."""
    kind = schema.get("type", "")
    return str(next((item for item in kind if item != "null"), "") if isinstance(kind, list) else kind)


def properties(schema: Schema) -> Mapping[str, Schema]:
    presence_by_field: Mapping[str, Schema] = schema.get("properties", {})
    return presence_by_field


def group_version_kinds(schema: Schema) -> list[tuple[str, str, str]]:
    return [(k["group"], k["version"], k["kind"]) for k in schema.get("x-kubernetes-group-version-kind", ())]


def is_list(schema: Schema) -> bool:
    """Whether a schema is the list of a kind. Lists need no structs of their own."""
    return (
        bool(group_version_kinds(schema))
        and ref_of(properties(schema).get("metadata", {})) == f"{META}.ListMeta"
        and ("items" in properties(schema))
    )


def refs(schema: Schema) -> Iterator[str]:
    """The structs that the fields of a struct refer to."""
    for item in properties(schema).values():
        for part in (item, item.get("items", {}), item.get("additionalProperties", {})):
            if (ref := ref_of(part)) and ref not in SCALARS:
                yield ref


def reachable(definitions: Definitions, roots: Iterable[str]) -> list[str]:
    seen: dict[str, None] = {}
    stack = list(roots)
    while stack:
        name = stack.pop()
        if name not in seen:
            seen[name] = None
            stack.extend(refs(definitions[name]))
    return sorted(seen)


# -- fields -------------------------------------------------------------------------------------


def python_name(name: str) -> str:
    words = re.split(r"[^A-Za-z0-9_]+", name.lstrip("$"))
    joined = words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])
    return f"{joined}_" if keyword.iskeyword(joined) else joined


def default_presence(field_type: FieldType, required: bool, part_of_kind: bool) -> Presence:
    """The presence of a field that ``presence.txt`` does not name."""
    if part_of_kind:
        return "always"
    match field_type:
        case "text" | "list":
            return "always" if required else "value"
        case "map":
            return "null" if required else "value"
        case "open":
            return "null" if required else "pointer"
        case _:
            return "always" if required else "pointer"


def merge_source(schema: Schema) -> str:
    """The source of a field's ``Merge``; empty where it has none."""
    merge = {
        "strategy": schema.get("x-kubernetes-patch-strategy", ""),
        "key": schema.get("x-kubernetes-patch-merge-key", ""),
        "list_type": schema.get("x-kubernetes-list-type", ""),
        "keys": tuple(schema.get("x-kubernetes-list-map-keys", ())),
        "map_type": schema.get("x-kubernetes-map-type", ""),
    }
    merge["defaults"] = tuple((key, KEY_DEFAULTS[key]) for key in merge["keys"] if key in KEY_DEFAULTS)
    merge = {name: value for name, value in merge.items() if value}
    if merge == {"list_type": "atomic"}:
        return "ATOMIC"
    if merge == {"list_type": "set"}:
        return "SET"
    return f"Merge({', '.join(f'{name}={value!r}' for name, value in merge.items())})" if merge else ""


@dataclass
class Module:
    """A module that is being generated: its structs, and the modules they import."""

    name: str
    definitions: Definitions
    facts: Mapping[tuple[str, str], Presence]
    used: set[tuple[str, str]]
    """The facts that were used, to find those for fields that do not exist."""
    nested: set[str] = field(default_factory=set)
    """Kinds of this module that are embedded in other objects."""
    imports: set[str] = field(default_factory=set)
    structs: dict[str, str] = field(default_factory=dict)
    """The source of each definition, in the order of dependencies."""

    def type_of(self, schema: Schema) -> tuple[str, FieldType]:
        """The source of a field's type, and the type of field."""
        if ref := ref_of(schema):
            return SCALARS[ref] if ref in SCALARS else (self.struct(ref), "object")
        kind = json_type(schema)
        if kind == "array":
            return f"tuple[{self.type_of(schema['items'])[0]}, ...]", "list"
        if kind == "object" and "additionalProperties" in schema:
            inner, field_type = self.type_of(schema["additionalProperties"])
            # Map values are never omitted: an empty list or an unset time is null there.
            return (
                f"Mapping[str, {inner}{' | None' if field_type == 'list' or inner == 'Time' else ''}]",
                "map",
            )
        return JSON_TYPES[kind]

    def struct(self, definition: str) -> str:
        """The name of a struct in this module."""
        name = name_of(definition)
        if group_version_kinds(self.definitions[definition]):
            name = f"Nested{name}"
        module = module_of(definition)
        if module == self.name:
            return name
        self.imports.add(module)
        return f"{module}.{name}"

    def field_source(self, owner: str, name: str, schema: Schema, required: bool) -> str:
        source, field_type = self.type_of(schema)
        fact = (f"{self.name}.{name_of(owner)}", name)
        self.used.add(fact)
        part = bool(group_version_kinds(self.definitions[owner])) and name in ("metadata", "spec", "status")
        presence = self.facts.get(fact) or default_presence(
            field_type, required, part and field_type == "object"
        )
        default, factory = "", ""
        match presence:
            case "value":
                default = ZEROS[field_type if field_type in ZEROS else source]
            case "always":
                factory = FACTORIES.get(source) or FACTORIES.get(field_type) or source
            case "pointer":
                default = "None"
            case "null":
                factory = "NoneType"
        if presence in ("pointer", "null") and source != "Json":
            source = f"{source} | None"
        if note := merge_source(schema):
            source = f"Annotated[{source}, {note}]"
        attribute = python_name(name)
        options = [f"name={name!r}"] if attribute != name else []
        if factory:
            options.append(f"default_factory={factory}")
        elif options:
            options.append(f"default={default}")
        value = f"msgspec.field({', '.join(options)})" if options else default
        return f"{attribute}: {source} = {value}"

    def add(self, definition: str) -> None:
        """Adds a struct, after those that its defaults refer to."""
        if definition in self.structs or module_of(definition) != self.name:
            return
        schema = self.definitions[definition]
        fields = dict(properties(schema))
        bases = []
        if group_version_kinds(schema):
            fields.pop("apiVersion", None)
            fields.pop("kind", None)
        if group_version_kinds(schema) and ref_of(fields.get("metadata", {})) == f"{META}.ObjectMeta":
            del fields["metadata"]
            bases.append("Object" if self.name == "meta_v1" else "meta_v1.Object")
            self.imports.add("meta_v1")
        if definition in VIEWS:
            bases.append(VIEWS[definition])
        if name_of(definition).endswith("Condition") and fields.keys() >= {"type", "status"}:
            bases.append("AnyCondition")
        if schema.get("x-kubernetes-map-type") == "atomic":
            bases.append("Atomic")
        required = set(schema.get("required", ()))
        body = [
            self.field_source(definition, item, fields[item], item in required) for item in sorted(fields)
        ]
        for ref in refs({"properties": fields}):
            if any(f"default_factory={name_of(ref)})" in line for line in body):
                self.add(ref)
        name = name_of(definition)
        source = f"class {name}({', '.join(bases or ['Struct'])}, frozen=True):\n"
        source += "".join(f"    {line}\n" for line in qualify_builtins(body)) or "    pass\n"
        if definition in self.nested:
            source += NESTED.format(name=name)
        if definition == f"{META}.ObjectMeta":
            source += OBJECT
        self.structs[definition] = source

    def source(self) -> str:
        body = "\n\n".join(self.structs.values())

        words = set(re.findall(r"\w+", body))

        def used_names(*names: str) -> str:
            return ", ".join(name for name in names if name in words)

        base = used_names(
            "AnyCondition", "Atomic", "IntOrString", "Json", "MicroTime", "Quantity", "Time", "none", "zero"
        )
        merge = used_names("ATOMIC", "SET", "Merge")
        views = used_names("EMPTY", "Struct")
        head = [
            f'"""The types of {self.name.replace("_", "/")}. {NOTE}"""',
            "from __future__ import annotations",
            "import builtins" if "builtins" in words else "",
            "from collections.abc import Mapping" if "Mapping" in words else "",
            "from types import NoneType" if "NoneType" in words else "",
            "from typing import Annotated" if "Annotated" in words else "",
            "import msgspec" if "msgspec" in words else "",
            "from steersman.api import kinds" if "kinds" in words else "",
            f"from steersman.api.generated import {', '.join(sorted(self.imports))}" if self.imports else "",
            f"from steersman.api.generated.base import {base}" if base else "",
            f"from steersman.api.generated.merge import {merge}" if merge else "",
            f"from steersman.api.kinds import {views}" if views else "",
        ]
        return "\n".join(line for line in head if line) + "\n\n\n" + body


def qualify_builtins(body: list[str]) -> list[str]:
    """Fields with qualified types where a field is called ``int`` or ``bool``, which would shadow the type."""
    for name in [line.partition(":")[0] for line in body]:
        if name in ("int", "str", "bool", "float", "tuple"):
            body = [re.sub(rf"(?<!^)(?<![\w.]){name}\b(?!:)", f"builtins.{name}", line) for line in body]
    return body


# -- files --------------------------------------------------------------------------------------


def table_source(
    rows: tuple[Row, ...], bodies: Mapping[tuple[str, str, str], str], modules: Mapping[str, str]
) -> str:
    """The source of the static table of resources."""

    def words(text: str) -> tuple[str, ...]:
        return tuple(text.split(",")) if text != "-" else ()

    def verbs(row: Row) -> str:
        return VERBS.get(row.verbs) or repr(words(row.verbs))

    def subresource_source(row: Row) -> str:
        api_version, _, kind = row.kind.rpartition("/")
        group, _, version = (api_version or row.api_version).rpartition("/")
        return f"Subresource({row.path.partition('/')[2]!r}, {group!r}, {version!r}, {kind!r}, {verbs(row)})"

    out = [f'"""What is served, as discovery tells it. {NOTE}"""', "from __future__ import annotations", ""]
    out += ["from steersman.api.generated import Resource, Subresource", ""]
    out += [f"{name} = {words(merge)!r}" for merge, name in VERBS.items()]

    def resource_source(row: Row) -> str:
        subresources = [
            subresource_source(sub)
            for sub in rows
            if sub[0] == row[0] and sub.path.startswith(f"{row.path}/")
        ]
        return (
            f"Resource({row.group!r}, {row.version!r}, {row.kind!r}, {row.path!r}, {row.singular!r},"
            f" {row.scope == 'namespaced'}, {words(row.short_names)!r}, {words(row.categories)!r},"
            f" {verbs(row)}, ({''.join(f'{item},' for item in subresources)}), {modules[row.api_version]!r}"
            f"{f', {row.gate!r}' if row.gate else ''}),"
        )

    whole = [row for row in rows if "/" not in row.path]
    out += ["", "RESOURCES: tuple[Resource, ...] = ("]
    out += [resource_source(row) for row in whole if not row.gate]
    out += [")", "", "GATED: tuple[Resource, ...] = ("]
    out += [resource_source(row) for row in whole if row.gate]
    out += [")", "", "BODIES: dict[tuple[str, str, str], str] = {"]
    out += [f"{kind!r}: {module!r}," for kind, module in sorted(bodies.items())]
    return "\n".join(
        [*out, "}", '"""Kinds without a path of their own, and the modules of their structs."""', ""]
    )


def generate(definitions: Definitions) -> dict[str, str]:
    """The generated files: name -> text."""
    rows = read_resources() + read_resources("gated_resources.txt")
    api_versions = {row.api_version for row in rows if not row.gate}
    resources = {(row.group, row.version, row.kind) for row in rows if "/" not in row.path}
    roots: dict[str, tuple[str, str, str]] = {}
    for name, schema in definitions.items():
        # DeleteOptions and WatchEvent belong to every group; those of the core group are used for all.
        kinds = [
            kind
            for kind in group_version_kinds(schema)
            if kind in resources or "/".join(kind[:2]).lstrip("/") in api_versions
        ]
        if kinds and not is_list(schema):
            roots[name] = min(kinds)
    if missing := resources - set(roots.values()):
        raise SystemExit(f"not defined: {sorted(missing)}")
    needed = reachable(definitions, sorted(roots))
    nested = {
        ref for name in needed for ref in refs(definitions[name]) if group_version_kinds(definitions[ref])
    }
    facts, used = read_presence(), set[tuple[str, str]]()
    modules = {
        name: Module(name, definitions, facts, used, {item for item in nested if module_of(item) == name})
        for name in sorted({module_of(item) for item in needed})
    }
    for name in needed:
        modules[module_of(name)].add(name)
    if unknown := sorted(facts.keys() - used):
        raise SystemExit(f"presence.txt names what does not exist: {unknown}")
    module_of_version = {
        "/".join(kind[:2]).lstrip("/"): module_of(name) for name, kind in roots.items() if kind in resources
    }
    bodies = {kind: module_of(name) for name, kind in roots.items() if kind not in resources}
    files = {f"{name}.py": module.source() for name, module in modules.items()}
    return format_files({**files, "table.py": table_source(rows, bodies, module_of_version)})


def format_files(files: Mapping[str, str]) -> dict[str, str]:
    """The files as ruff formats them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        common = ["--isolated", "--quiet", "--no-cache", "--line-length", "110", folder]
        ruff = [sys.executable, "-m", "ruff"]
        # The working directory tells ruff which imports are first-party.
        subprocess.run([*ruff, "check", "--select", "I", "--fix", *common], check=True, cwd=HERE.parent)
        subprocess.run([*ruff, "format", *common], check=True, cwd=HERE.parent)
        return {name: (Path(folder) / name).read_text(encoding="utf-8") for name in sorted(files)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the structs of steersman.api.generated.")
    parser.add_argument("--from-server", metavar="URL|FILE", help="read a server's /openapi/v2 instead")
    source = parser.parse_args().from_server
    files = generate(server_definitions(source) if source else packaged_definitions())
    for name, text in files.items():
        (PACKAGE / name).write_text(text, encoding="utf-8")
    print(f"{len(files)} files, {sum(text.count('class ') for text in files.values())} structs")


if __name__ == "__main__":
    main()
