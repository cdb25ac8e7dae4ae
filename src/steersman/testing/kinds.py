"""Kinds by any of their names, and manifests in any form."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml

from steersman.api.errors import BadRequest, NotFound
from steersman.api.generated import gated_resources, load, resources
from steersman.api.generated.autoscaling_v1 import Scale
from steersman.api.scheme import Kind, encode, kind_of
from steersman.api.suggestions import closest, hint
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.schema import DEDUCED, TypedSchema
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec.field_validation import strict_body_error, unknown_fields
from steersman.server.server import Server
from steersman.server.storage.watch import Selection

Document: TypeAlias = dict[str, Any]

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
UNDEFINED = "is its CustomResourceDefinition applied?"


def kind(server: Server, name_or_type: object) -> Kind[Any]:
    """The kind of ``Deployment``, ``deploy``, ``deployments.apps``, a struct type or a `Kind`.

    Built-in kinds have their full struct, custom ones plain documents. Raises `LookupError`.
    """
    if isinstance(name_or_type, Kind):
        return name_or_type
    if isinstance(name_or_type, type):
        return _of_type(name_or_type)
    if not isinstance(name_or_type, str):
        raise LookupError(f"a kind is a name, a type or a Kind, not {type(name_or_type).__name__}")
    row = _built_in().get(name_or_type.lower())
    if row is not None:
        return load(*row)
    custom = _customs(server).get(name_or_type.lower())
    if custom is None:
        known = (*(row.kind for row in resources()), *_built_in(), *_customs(server))
        raise LookupError(
            f"the cluster serves no kind {name_or_type!r}; {hint(name_or_type, known, UNDEFINED)}"
        )
    return custom


def kind_at(server: Server, api_version: str, name: str) -> Kind[Any]:
    """The kind of a document by its apiVersion and kind. Raises `LookupError`."""
    group, _, version = api_version.rpartition("/")
    try:
        return load(group, version, name)
    except LookupError:
        found = [each for each in _served(server) if (each.api_version, each.name) == (api_version, name)]
        if not found:
            raise LookupError(
                f"the cluster serves no {name or 'kind'} of {api_version or 'no apiVersion'}; {_meant(server, api_version, name)}"
            ) from None
        return found[0]


def _meant(server: Server, api_version: str, name: str) -> str:
    """The apiVersion and kind that a document was meant to have."""
    known = [(row.api_version, row.kind) for row in resources()]
    known += [(each.api_version, each.name) for each in _served(server)]
    for version, kind in known:
        if kind == name:
            return f"did you mean apiVersion {version!r}?"
    return hint(name, [kind for version, kind in known if version == api_version], UNDEFINED)


def kind_of_object(server: Server, obj: object) -> Kind[Any]:
    """The kind of a typed object or a document. Raises `LookupError`."""
    if isinstance(obj, Mapping):
        return kind_at(server, str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
    found = _of_type(type(obj))
    return found


@cache
def _built_in() -> dict[str, tuple[str, str, str]]:
    """Built-in kinds by every name; the first in the order of discovery has it."""
    names: dict[str, tuple[str, str, str]] = {}
    for row in (*resources(), *gated_resources()):
        full = (f"{row.plural}.{row.group}", f"{row.kind}.{row.group}") if row.group else ()
        exact = f"{row.plural}.{row.version}.{row.group}".rstrip(".")
        for name in (row.kind, row.plural, row.singular, *row.short_names, *full, exact):
            names.setdefault(name.lower(), (row.group, row.version, row.kind))
    return names


def _of_type(type_: type) -> Kind[Any]:
    try:
        return kind_of(type_())
    except (LookupError, TypeError):
        module = type_.__module__.rpartition(".")[2]
        for row in (*resources(), *gated_resources()):
            if (row.module, row.kind) == (module, type_.__name__):
                return load(row.group, row.version, row.kind)
    raise LookupError(f"{type_.__qualname__} is not a registered Kubernetes type")


def _served(server: Server) -> Iterator[Kind[Any]]:
    """Custom kinds, their storage version first."""
    for definition in server.store.table(DEFINITIONS).select(Selection()):
        spec, names = definition.spec, definition.spec.names
        namespaced = spec.scope == "Namespaced"
        for version in sorted(spec.versions, key=lambda version: not version.storage):
            if version.served:
                yield Kind(spec.group, version.name, names.kind, names.plural, namespaced, dict)


def _customs(server: Server) -> dict[str, Kind[Any]]:
    found: dict[str, Kind[Any]] = {}
    for definition in server.store.table(DEFINITIONS).select(Selection()):
        names = definition.spec.names
        for each in _served(server):
            if (each.group, each.plural) == (definition.spec.group, names.plural):
                full = (each.resource, f"{names.kind}.{each.group}")
                for name in (names.kind, names.plural, names.singular, *names.shortNames, *full):
                    found.setdefault(name.lower(), each)
    return found


# -- fields -----------------------------------------------------------------------------------


def check_fields(server: Server, kind: Kind[Any], body: object, subresource: str = "") -> None:
    """Refuse a body with fields that its kind does not have, as servers do for kubectl. Raises `BadRequest`."""
    try:
        resource = server.registry.of(kind)
    except NotFound:
        return  # the request will be refused, with the server's own words
    schema = (
        typed_schema_of(Scale)
        if subresource == "scale"
        else field_manager_for(resource).resource_schema.schema
    )
    bodies = [_operation(each) for each in body] if isinstance(body, list | tuple) else [body]
    unknown = [found for each in bodies for found in unknown_fields(each, schema)]
    # Directives of a strategic merge are no fields.
    unknown = [found for found in unknown if '"$' not in found and ".$" not in found]
    if unknown:
        path = unknown[0].partition('"')[2].rstrip('"')
        near = closest(path.rpartition(".")[2], _siblings(schema, path))
        error = strict_body_error(resource.kind, resource.version, unknown)
        raise BadRequest(f"{error}; did you mean {near!r}?" if near else str(error), reason="BadRequest")


def _operation(given: Any) -> object:
    """The document that an operation of a JSON patch adds to."""
    if not isinstance(given, Mapping) or given.get("op") not in ("add", "replace"):
        return None
    made: Any = given.get("value")
    for part in reversed(str(given.get("path", "")).split("/")[1:]):
        part = part.replace("~1", "/").replace("~0", "~")
        made = [made] if part == "-" or part.isdecimal() else {part: made}
    return made


def _siblings(schema: TypedSchema, path: str) -> Iterable[str]:
    """The fields beside the last of a path, such as ``spec.template.spec.containers[0].image``."""
    for part in re.split(r"[.\[]", path)[:-1]:
        if part.endswith("]"):
            schema = schema.list.item if schema.list is not None else DEDUCED
        else:
            schema = schema.map.at(part) if schema.map is not None else DEDUCED
    return schema.map.names if schema.map is not None else ()


# -- manifests --------------------------------------------------------------------------------


def documents(server: Server, given: object) -> Iterator[Document]:
    """Documents from YAML or JSON text, a file, a directory of files, a document, a typed object, or many of them. A
    ``List`` yields its items."""
    if isinstance(given, str):
        if "\n" not in given and Path(given).exists():
            yield from documents(server, Path(given))
            return
        for each in yaml.safe_load_all(textwrap.dedent(given)):
            if isinstance(each, str):
                raise FileNotFoundError(f"{given!r} is neither a file nor a manifest")
            if each is not None:
                yield from documents(server, each)
    elif isinstance(given, Path):
        if given.is_dir():
            files = sorted(file for file in given.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
            yield from documents(server, files)
        else:
            yield from documents(server, given.read_text() + "\n")
    elif isinstance(given, Mapping):
        if str(given.get("kind", "")).endswith("List") and isinstance(given.get("items"), list):
            yield from documents(server, given["items"])
        else:
            yield dict(given)
    elif isinstance(given, msgspec.Struct):
        found = kind_of_object(server, given)
        made: Document = msgspec.json.decode(encode(found, given))
        made.setdefault("metadata", {}).pop("managedFields", None)
        made.pop("status", None)
        yield made
    elif isinstance(given, Iterable):
        for each in given:
            yield from documents(server, each)
    else:
        raise TypeError(
            f"a manifest is text, a path, a document or a typed object, not {type(given).__name__}"
        )


def address(kind: Kind[Any], document: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The namespace and name of a document; ``namespace`` is the default."""
    meta = document.get("metadata") or {}
    where = str(meta.get("namespace") or namespace) if kind.namespaced else ""
    return where, str(meta.get("name") or "")
