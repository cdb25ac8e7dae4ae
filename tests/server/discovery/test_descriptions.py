"""Descriptions for ``kubectl explain``: our own for what every object has, upstream's where a package carries them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from steersman.api.generated.meta_v1 import ListMeta, ObjectMeta
from steersman.server.discovery.documents import CustomResource
from steersman.server.discovery.openapi.descriptions import METADATA, TYPE_META, describe
from steersman.server.discovery.openapi.schemas import (
    LIST_META,
    META,
    OBJECT_META,
    V2,
    V3,
    Dialect,
    definitions,
)
from steersman.server.discovery.openapi.structural import custom_definitions

THING = CustomResource(
    group="example.com",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    list_kind="ThingList",
    storage_version="v1",
    schema={
        "type": "object",
        "properties": {"spec": {"type": "object", "description": "What it should be."}},
    },
)
DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"


def texts(definition: dict[str, Any]) -> dict[str, str]:
    return {name: each.get("description", "") for name, each in definition["properties"].items()}


@pytest.mark.parametrize("dialect", [V2, V3], ids=["v2", "v3"])
def test_every_field_of_metadata_is_described(dialect: Dialect) -> None:
    known = definitions(dialect)
    for name, struct in ((OBJECT_META, ObjectMeta), (LIST_META, ListMeta), (f"{META}.OwnerReference", None)):
        found = texts(known[name])
        assert all(found[field] for field in found if field != "shardInfo"), found
        assert struct is None or len(found) == len(struct.__struct_fields__)


@pytest.mark.parametrize("dialect", [V2, V3], ids=["v2", "v3"])
def test_custom_resources_have_our_words_for_what_all_objects_have(dialect: Dialect) -> None:
    made = texts(custom_definitions(dialect, THING)["com.example.v1.Thing"])
    assert made == {**TYPE_META, "metadata": METADATA, "spec": "What it should be."}


def test_a_reference_of_version_3_keeps_its_text_beside_it() -> None:
    described = describe({OBJECT_META: {"properties": {"creationTimestamp": {"$ref": "#/x"}}}}, 3)
    field = described[OBJECT_META]["properties"]["creationTimestamp"]
    assert field["allOf"] == [{"$ref": "#/x"}]
    assert field["description"].startswith("The time at which")


def test_other_kinds_have_the_words_of_an_installed_package() -> None:
    pytest.importorskip("kubernetes_validate")
    made = definitions(V3)[DEPLOYMENT]
    assert made["description"].startswith("Deployment enables declarative updates")
    assert all(texts(made).values())


def test_without_the_package_there_are_our_own_words_only() -> None:
    code = """
import sys
sys.modules["kubernetes_validate"] = None
from steersman.server.discovery.openapi.schemas import V3, definitions
made = definitions(V3)["io.k8s.api.apps.v1.Deployment"]
assert "description" not in made
assert made["properties"]["metadata"]["description"] and "description" not in made["properties"]["spec"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_words_are_not_read_before_they_are_asked_for() -> None:
    code = "import sys, steersman.server.http.app; assert 'kubernetes_validate' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
