"""OpenAPI: what kubectl and its like read to explain, check and merge objects.

``/openapi/v3`` lists the documents, one per group and version; ``/openapi/v2`` is all of it in one. An
`OpenAPI` is made anew when custom resources come or go; what is built in is derived from the structs once
in a process, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from steersman.api.generated import Resource, resources
from steersman.server.discovery.documents import CustomResource, Tagged, tagged, tagged_bytes
from steersman.server.discovery.openapi import binary, operations, render, schemas
from steersman.server.discovery.openapi.operations import Maker, Path
from steersman.server.discovery.openapi.schemas import V2, V3, Document
from steersman.server.discovery.openapi.structural import custom_definitions, definition_name

__all__ = ["OpenAPI"]

_INFO = {"title": "Kubernetes", "version": "1.36"}
_SECURITY = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}


class OpenAPI:
    """The documents of what is served at the moment."""

    def __init__(self, custom: Iterable[CustomResource] = ()) -> None:
        built_in = _built_in()
        versions: dict[tuple[str, str], list[CustomResource]] = {}
        for each in sorted(custom, key=lambda each: (each.group, each.version, each.plural)):
            if (each.group, each.version) not in built_in:
                versions.setdefault((each.group, each.version), []).append(each)
        self._custom = versions
        self._made: dict[str, Tagged] = {}

    def index(self) -> Document:
        """``/openapi/v3``: every document, with a hash that changes when it does."""
        return {"paths": {name: {"serverRelativeURL": self._url(name)} for name in self._names()}}

    def v3(self, name: str) -> Tagged | None:
        """``/openapi/v3/NAME`` (``api/v1``, ``apis/apps/v1`` …); None where there is none.

        The ETag is the hash of the index.
        """
        shared = _builders().get(name)
        if shared is not None:
            return _built_in_v3(name)
        known = self._made.get(name)
        if known is None:
            found = self._custom_v3(name)
            if found is None:
                return None
            known = self._made[name] = tagged(found)
        return known

    def v2(self) -> Tagged:
        """``/openapi/v2``."""
        known = self._made.get("")
        if known is None:
            known = self._made[""] = self._v2() if self._custom else _built_in_v2()
        return known

    def v2_binary(self) -> Tagged:
        """``/openapi/v2`` as protobuf: what there are, and no paths."""
        known = self._made.get(binary.RETURNED)
        if known is None:
            definitions = {**self._custom_v2(), **schemas.definitions(V2)}
            known = self._made[binary.RETURNED] = tagged_bytes(binary.document(_INFO, definitions))
        return known

    def _names(self) -> list[str]:
        custom = [f"apis/{group}/{version}" for group, version in self._custom]
        return sorted([*_builders(), *custom])

    def _url(self, name: str) -> str:
        document = self.v3(name)
        assert document is not None
        return f"/openapi/v3/{name}?hash={document.etag.strip(chr(34))}"

    def _custom_v3(self, name: str) -> Document | None:
        _, _, rest = name.partition("apis/")
        group, _, version = rest.partition("/")
        found = self._custom.get((group, version))
        if found is None:
            return None
        definitions = {key: value for each in found for key, value in custom_definitions(V3, each).items()}
        return _document_v3([path for each in found for path in _custom_paths(each)], definitions)

    def _v2(self) -> Tagged:
        found = [each for version in self._custom.values() for each in version]
        paths = [path for each in found for path in _custom_paths(each)]
        return tagged(_document_v2([*_all_paths(), *paths], self._custom_v2()))

    def _custom_v2(self) -> dict[str, Document]:
        found = (each for version in self._custom.values() for each in version)
        return {key: value for each in found for key, value in custom_definitions(V2, each).items()}


def _custom_paths(resource: CustomResource) -> Iterator[Path]:
    return Maker(resource.row, definition_name(resource), custom=True).paths()


# -- what is built in -------------------------------------------------------------------------


@cache
def _built_in() -> Mapping[tuple[str, str], tuple[Resource, ...]]:
    versions: dict[tuple[str, str], list[Resource]] = {}
    for row in resources():
        versions.setdefault((row.group, row.version), []).append(row)
    return {key: tuple(rows) for key, rows in versions.items()}


@cache
def _builders() -> Mapping[str, Callable[[], list[Path]]]:
    """The documents of what is built in, by name, and what makes their paths."""
    api, apis = operations.roots()
    found: dict[str, Callable[[], list[Path]]] = {"api": lambda: [api], "apis": lambda: [apis]}
    for group, version in _built_in():
        if group:
            found[f"apis/{group}"] = lambda group=group: [operations.group_path(group)]  # type: ignore[misc]
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        found[name] = lambda key=(group, version): _version_paths(*key)  # type: ignore[misc]
    return found


def _version_paths(group: str, version: str) -> list[Path]:
    made = [operations.version_path(group, version)]
    for row in _built_in()[group, version]:
        made += Maker(row, schemas.kind_name(row.module, row.kind)).paths()
    return made


def _all_paths() -> list[Path]:
    return [path for make in _builders().values() for path in make()]


@cache
def _built_in_v3(name: str) -> Tagged:
    return tagged(_document_v3(_builders()[name](), {}))


@cache
def _built_in_v2() -> Tagged:
    return tagged(_document_v2(_all_paths(), {}))


# -- documents --------------------------------------------------------------------------------


def _document_v3(paths: Iterable[Path], definitions: Mapping[str, Document]) -> Document:
    rendered = render.paths_v3(paths)
    names = schemas.references([rendered, definitions])
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": rendered,
        "components": {
            "schemas": {**definitions, **schemas.reachable(V3, names)},
            "securitySchemes": _SECURITY,
        },
    }


def _document_v2(paths: Iterable[Path], definitions: Mapping[str, Document]) -> Document:
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": render.paths_v2(paths),
        "definitions": {**definitions, **schemas.definitions(V2)},
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }
