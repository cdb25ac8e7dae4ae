"""Operations as OpenAPI writes them, in its second and third version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman.server.discovery.openapi.operations import Operation, Parameter, Path
from steersman.server.discovery.openapi.schemas import V2, V3, Document, gvk

_CODES = {200: "OK", 201: "Created", 202: "Accepted"}


def paths_v3(paths: Iterable[Path]) -> Document:
    """The ``paths`` of a document of version 3."""
    return {path.path: _item(path, _operation_v3, _parameter_v3) for path in _sorted(paths)}


def paths_v2(paths: Iterable[Path]) -> Document:
    """The ``paths`` of a document of version 2."""
    return {path.path: _item(path, _operation_v2, _parameter_v2) for path in _sorted(paths)}


def _sorted(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.path)


def _item(path: Path, operation: Any, parameter: Any) -> Document:
    found = {each.method: operation(each) for each in path.operations}
    if path.parameters:
        found["parameters"] = [parameter(each) for each in path.parameters]
    return found


def _extensions(operation: Operation) -> Document:
    if not operation.action:
        return {}
    return {
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": gvk(*operation.kind),
    }


# -- version 3 --------------------------------------------------------------------------------


def _parameter_v3(parameter: Parameter) -> Document:
    found: Document = {"name": parameter.name, "in": parameter.place}
    if parameter.place == "path":
        found["required"] = True
    return {**found, "schema": {"type": parameter.type, "uniqueItems": True}}


def _operation_v3(operation: Operation) -> Document:
    found: Document = {"tags": [operation.tag], "operationId": operation.id}
    if operation.parameters:
        found["parameters"] = [_parameter_v3(each) for each in operation.parameters]
    if operation.body:
        body = {"schema": V3.ref(operation.body)}
        found["requestBody"] = {"content": dict.fromkeys(operation.body_types, body)}
        if operation.body_required:
            found["requestBody"]["required"] = True
    answer = {"schema": V3.ref(operation.answer) if operation.answer else {"type": "string"}}
    content = dict.fromkeys(operation.produces, answer)
    found["responses"] = {
        **{str(code): {"description": _CODES[code], "content": content} for code in operation.codes},
        "401": {"description": "Unauthorized"},
    }
    return {**found, **_extensions(operation)}


# -- version 2 --------------------------------------------------------------------------------


def _parameter_v2(parameter: Parameter) -> Document:
    found: Document = {"uniqueItems": True, "type": parameter.type, "name": parameter.name}
    return {**found, "in": parameter.place, **({"required": True} if parameter.place == "path" else {})}


def _operation_v2(operation: Operation) -> Document:
    parameters = [_parameter_v2(each) for each in operation.parameters]
    if operation.body:
        body: Document = {"name": "body", "in": "body", "schema": V2.ref(operation.body)}
        parameters.insert(0, {**body, "required": True} if operation.body_required else body)
    schema = V2.ref(operation.answer) if operation.answer else {"type": "string"}
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
