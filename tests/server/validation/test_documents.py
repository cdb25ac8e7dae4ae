"""The embedded server validates and defaults each recorded document exactly as kube-apiserver does."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steersman.api.errors import ApiError
from steersman.api.patch import merge
from steersman.server.codec.convert import to_document, to_struct
from steersman.server.registry.graceful_deletion import DeletionOptions
from steersman.server.server import Server
from tests.harness import verbs
from tests.harness.fake_clock import FakeClock


def _documents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("documents", Path(__file__).with_name("documents.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


documents = _documents()
ANSWERS = json.loads(documents.ANSWERS.read_text())
ROWS = documents.rows()


@pytest.fixture
def server() -> Server:
    server = Server(FakeClock())
    namespaces = server.registry.find("", "v1", "namespaces")
    verbs.create(server, namespaces, "", to_struct(namespaces.type, {"metadata": {"name": "default"}}))
    return server


def answer(server: Server, row: Any) -> dict[str, Any]:
    """What the embedded server answers to a row."""
    group, version, kind = row.kind
    resource = server.registry.find(group, version, documents.resource(group, version, kind).plural)
    namespace = "default" if resource.namespaced else ""

    def post() -> Any:
        return verbs.create(server, resource, namespace, to_struct(resource.type, row.document))

    def merged(old: Any, change: Any) -> Any:
        return to_struct(resource.type, merge.apply(to_document(resource.api_version, kind, old), change))

    def put(old: Any) -> Any:
        name = old.metadata.name
        if row.told is not None:
            old = verbs.update_status(server, resource, namespace, name, merged(old, row.told))
        if row.first is not None:
            old = write(old, row.first)
        if row.deleted:
            verbs.delete(server, resource, namespace, name, DeletionOptions())
            old = server.get(resource, namespace, name)
        return write(old, row.change)

    def write(old: Any, change: Any) -> Any:
        name, new = old.metadata.name, merged(old, change)
        if row.subresource in resource.strategy.subresource_updates:
            return verbs.patch(
                server, resource, namespace, name, lambda old: new, subresource=row.subresource
            )
        change = verbs.update_status if row.subresource == "status" else verbs.update
        return change(server, resource, namespace, name, new)

    try:
        made = post() if row.change is None else put(post())
    except ApiError as error:
        return {"refusal": documents.refusal(row, error)}
    return {"object": documents.stored(row, to_document(resource.api_version, kind, made))}


@pytest.mark.parametrize("row", ROWS, ids=[row.says for row in ROWS])
def test_the_embedded_server_answers_as_a_real_one_did(server: Server, row: Any) -> None:
    assert answer(server, row) == ANSWERS[row.says]


def test_every_row_has_an_answer_and_every_answer_a_row() -> None:
    assert sorted(row.says for row in ROWS) == sorted(ANSWERS)


def test_the_table_has_both_what_is_taken_and_what_is_refused() -> None:
    refused = sum("refusal" in answer for answer in ANSWERS.values())
    assert refused >= 120
    assert len(ANSWERS) - refused >= 40
