"""OpenAPI documents, which kubectl and other clients use to explain, validate and merge objects.

``/openapi/v3`` is an index of documents, one per group version; ``/openapi/v2`` is one document. An `OpenAPI` is
made anew when custom resources change. The documents of built-in kinds are derived from the structs once per
process, on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from steersman.api.generated import Resource, resources
from steersman.server.discovery.documents import CustomResource, EncodedDocument, encode_document, with_etag
from steersman.server.discovery.openapi import binary, operations, schemas
from steersman.server.discovery.openapi.merge import merge_specs
from steersman.server.discovery.openapi.operations import Operation, Parameter, Path, PathMaker
from steersman.server.discovery.openapi.schemas import V2, V3, Document, gvk
from steersman.server.discovery.openapi.structural import custom_definitions, definition_name

__all__ = ["OpenAPI"]

_NONE: Mapping[str, str] = {}
_INFO = {"title": "Kubernetes", "version": "1.36"}
_SECURITY = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}


class OpenAPI:
    """The OpenAPI documents of the built-in and custom resources."""

    def __init__(
        self,
        custom: Iterable[CustomResource] = (),
        *,
        remote_v2: Iterable[Document] = (),
        remote_v3: Mapping[str, str] = _NONE,
    ) -> None:
        """``remote_v2`` are the parts of aggregated servers' documents, and ``remote_v3`` the URLs of their documents by name."""
        self._remote_v2 = tuple(remote_v2)
        self._remote_v3 = remote_v3
        built_in = _built_in_versions()
        versions: dict[tuple[str, str], list[CustomResource]] = {}
        for item in sorted(custom, key=lambda item: (item.group, item.version, item.plural)):
            if (item.group, item.version) not in built_in:
                versions.setdefault((item.group, item.version), []).append(item)
        self._custom = versions
        self._made: dict[str, EncodedDocument] = {}

    def index(self) -> Document:
        """The index at ``/openapi/v3``: the URL of every document, with its hash."""
        urls = {name: self._url(name) for name in self._names() if name not in self._remote_v3}
        urls |= self._remote_v3
        return {"paths": {name: {"serverRelativeURL": urls[name]} for name in sorted(urls)}}

    def v3(self, name: str) -> EncodedDocument | None:
        """The document at ``/openapi/v3/NAME`` (``api/v1``, ``apis/apps/v1`` …); None where there is none.

        Its ETag is the hash in the index.
        """
        shared = _path_makers().get(name)
        if shared is not None:
            return _built_in_document_v3(name)
        encoded = self._made.get(name)
        if encoded is None:
            result = self._custom_v3(name)
            if result is None:
                return None
            encoded = self._made[name] = encode_document(result)
        return encoded

    def v2(self) -> EncodedDocument:
        """The document at ``/openapi/v2``."""
        encoded = self._made.get("")
        if encoded is None:
            own = not self._custom and not self._remote_v2
            encoded = self._made[""] = _built_in_document_v2() if own else self._v2()
        return encoded

    def v2_binary(self) -> EncodedDocument:
        """The document at ``/openapi/v2`` as protobuf: definitions without paths."""
        encoded = self._made.get(binary.CONTENT_TYPE)
        if encoded is None:
            definitions = {**self._custom_v2(), **schemas.definitions(V2)}
            if self._remote_v2:
                definitions = merge_specs({"paths": {}, "definitions": definitions}, self._remote_v2)[
                    "definitions"
                ]
            encoded = self._made[binary.CONTENT_TYPE] = with_etag(
                binary.encode_openapi_v2(_INFO, definitions)
            )
        return encoded

    def _names(self) -> list[str]:
        custom = [f"apis/{group}/{version}" for group, version in self._custom]
        return sorted([*_path_makers(), *custom])

    def _url(self, name: str) -> str:
        document = self.v3(name)
        assert document is not None
        return f"/openapi/v3/{name}?hash={document.etag.strip(chr(34))}"

    def _custom_v3(self, name: str) -> Document | None:
        _, _, rest = name.partition("apis/")
        group, _, version = rest.partition("/")
        result = self._custom.get((group, version))
        if result is None:
            return None
        definitions = {key: value for item in result for key, value in custom_definitions(V3, item).items()}
        return _document_v3([path for item in result for path in _custom_paths(item)], definitions)

    def _v2(self) -> EncodedDocument:
        result = [item for version in self._custom.values() for item in version]
        paths = [path for item in result for path in _custom_paths(item)]
        own = _document_v2([*_all_paths(), *paths], self._custom_v2())
        return encode_document(merge_specs(own, self._remote_v2) if self._remote_v2 else own)

    def _custom_v2(self) -> dict[str, Document]:
        result = (item for version in self._custom.values() for item in version)
        return {key: value for item in result for key, value in custom_definitions(V2, item).items()}


def _custom_paths(resource: CustomResource) -> Iterator[Path]:
    return PathMaker(resource.row, definition_name(resource), custom=True).paths()


# -- built-in documents -----------------------------------------------------------------------


@cache
def _built_in_versions() -> Mapping[tuple[str, str], tuple[Resource, ...]]:
    versions: dict[tuple[str, str], list[Resource]] = {}
    for row in resources():
        versions.setdefault((row.group, row.version), []).append(row)
    return {key: tuple(rows) for key, rows in versions.items()}


@cache
def _path_makers() -> Mapping[str, Callable[[], list[Path]]]:
    """Functions that make the paths of each built-in document, by its name."""
    api, apis = operations.root_paths()
    makers: dict[str, Callable[[], list[Path]]] = {"api": lambda: [api], "apis": lambda: [apis]}
    for group, version in _built_in_versions():
        if group:
            makers[f"apis/{group}"] = lambda group=group: [operations.group_path(group)]  # type: ignore[misc]
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        makers[name] = lambda key=(group, version): _version_paths(*key)  # type: ignore[misc]
    return makers


def _version_paths(group: str, version: str) -> list[Path]:
    paths = [operations.version_path(group, version)]
    for row in _built_in_versions()[group, version]:
        paths += PathMaker(row, schemas.kind_name(row.module, row.kind)).paths()
    return paths


def _all_paths() -> list[Path]:
    return [path for make in _path_makers().values() for path in make()]


@cache
def _built_in_document_v3(name: str) -> EncodedDocument:
    return encode_document(_document_v3(_path_makers()[name](), {}))


@cache
def _built_in_document_v2() -> EncodedDocument:
    return encode_document(_document_v2(_all_paths(), {}))


# -- documents --------------------------------------------------------------------------------


def _document_v3(paths: Iterable[Path], definitions: Mapping[str, Document]) -> Document:
    rendered = _paths_v3(paths)
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
        "paths": _paths_v2(paths),
        "definitions": {**definitions, **schemas.definitions(V2)},
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }


# -- paths -----------------------------------------------------------------------------------

_CODES = {200: "OK", 201: "Created", 202: "Accepted"}


def _paths_v3(paths: Iterable[Path]) -> Document:
    """The ``paths`` object of a v3 document."""
    return {path.path: _path_item(path, _operation_v3, _parameter_v3) for path in _by_path(paths)}


def _paths_v2(paths: Iterable[Path]) -> Document:
    """The ``paths`` object of a v2 document."""
    return {path.path: _path_item(path, _operation_v2, _parameter_v2) for path in _by_path(paths)}


def _by_path(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.path)


def _path_item(path: Path, operation: Any, parameter: Any) -> Document:
    result = {item.method: operation(item) for item in path.operations}
    if path.parameters:
        result["parameters"] = [parameter(item) for item in path.parameters]
    return result


def _extensions(operation: Operation) -> Document:
    if not operation.action:
        return {}
    return {
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": gvk(*operation.kind),
    }


# -- version 3 --------------------------------------------------------------------------------


def _parameter_v3(parameter: Parameter) -> Document:
    result: Document = {"name": parameter.name, "in": parameter.location}
    if parameter.location == "path":
        result["required"] = True
    return {**result, "schema": {"type": parameter.type, "uniqueItems": True}}


def _operation_v3(operation: Operation) -> Document:
    result: Document = {"tags": [operation.tag], "operationId": operation.id}
    if operation.parameters:
        result["parameters"] = [_parameter_v3(item) for item in operation.parameters]
    if operation.body:
        body = {"schema": V3.ref(operation.body)}
        result["requestBody"] = {"content": dict.fromkeys(operation.body_types, body)}
        if operation.body_required:
            result["requestBody"]["required"] = True
    response = {"schema": V3.ref(operation.response) if operation.response else {"type": "string"}}
    content = dict.fromkeys(operation.produces, response)
    result["responses"] = {
        **{str(code): {"description": _CODES[code], "content": content} for code in operation.codes},
        "401": {"description": "Unauthorized"},
    }
    return {**result, **_extensions(operation)}


# -- version 2 --------------------------------------------------------------------------------


def _parameter_v2(parameter: Parameter) -> Document:
    result: Document = {"uniqueItems": True, "type": parameter.type, "name": parameter.name}
    return {
        **result,
        "in": parameter.location,
        **({"required": True} if parameter.location == "path" else {}),
    }


def _operation_v2(operation: Operation) -> Document:
    parameters = [_parameter_v2(item) for item in operation.parameters]
    if operation.body:
        body: Document = {"name": "body", "in": "body", "schema": V2.ref(operation.body)}
        parameters.insert(0, {**body, "required": True} if operation.body_required else body)
    schema = V2.ref(operation.response) if operation.response else {"type": "string"}
    return {
        "consumes": list(operation.body_types or ("*/*",)),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.id,
        **({"parameters": parameters} if parameters else {}),
        "responses": {
            **{str(code): {"description": _CODES[code], "schema": schema} for code in operation.codes},
            "401": {"description": "Unauthorized"},
        },
        **_extensions(operation),
    }
