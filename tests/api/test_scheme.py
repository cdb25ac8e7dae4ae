"""Kinds: what they are called, where they are served, how they are written."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from steersman.api.kinds import (
    DEPLOYMENTS,
    NAMESPACES,
    NEW_PODS,
    PODS,
    Deployment,
    NewPod,
    Object,
    ObjectMeta,
    Pod,
)
from steersman.api.scheme import Key, Kind, encode, kind_of, register


def test_a_key_is_written_with_its_namespace_if_it_has_one() -> None:
    assert str(Key("shop", "web")) == "shop/web"
    assert str(Key("", "node-1")) == "node-1"
    assert Pod(metadata=ObjectMeta(name="web", namespace="shop")).key == Key("shop", "web")


@pytest.mark.parametrize(
    ("kind", "arguments", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("shop",), "/api/v1/namespaces/shop/pods"),
        (PODS, ("shop", "web", "status"), "/api/v1/namespaces/shop/pods/web/status"),
        (DEPLOYMENTS, ("shop", "web"), "/apis/apps/v1/namespaces/shop/deployments/web"),
        (NAMESPACES, ("", "shop"), "/api/v1/namespaces/shop"),
        (NAMESPACES, ("ignored", "shop", "finalize"), "/api/v1/namespaces/shop/finalize"),
    ],
)
def test_a_kind_knows_its_path(kind: Kind[object], arguments: tuple[str, ...], path: str) -> None:
    assert kind.path(*arguments) == path


def test_a_kind_knows_its_names() -> None:
    assert (PODS.api_version, PODS.resource) == ("v1", "pods")
    assert (DEPLOYMENTS.api_version, DEPLOYMENTS.resource) == ("apps/v1", "deployments.apps")


def test_the_kind_of_an_object_is_that_of_its_type() -> None:
    assert kind_of(Pod()) is PODS
    assert kind_of(NewPod()) is NEW_PODS
    with pytest.raises(LookupError, match="dict is not a registered"):
        kind_of({})


def test_a_kind_may_be_read_as_another_type_without_changing_its_own() -> None:
    assert PODS.untyped.type is dict
    assert PODS.as_(Object).type is Object
    assert PODS.untyped.path("a", "b") == PODS.path("a", "b")
    assert PODS.type is Pod
    assert kind_of(Pod()) is PODS


def test_a_registered_type_is_known() -> None:
    class Widget(Object, frozen=True):
        pass

    kind = register(Kind("example.com", "v1", "Widget", "widgets", True, Widget))
    assert kind_of(Widget()) is kind


def test_a_typed_body_is_written_with_its_kind() -> None:
    body = Deployment(metadata=ObjectMeta(name="web", creationTimestamp=datetime(2026, 1, 2, tzinfo=UTC)))
    assert msgspec.json.decode(encode(DEPLOYMENTS, body)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "creationTimestamp": "2026-01-02T00:00:00Z"},
    }


def test_an_empty_body_is_still_a_document() -> None:
    assert encode(PODS, Pod()) == b'{"apiVersion":"v1","kind":"Pod"}'


def test_a_plain_document_keeps_its_own_fields() -> None:
    assert encode(PODS, {"kind": "Other", "x": 1}) == b'{"kind":"Other","x":1}'


def test_a_raw_template_is_spliced_in_byte_for_byte() -> None:
    pod = NewPod(metadata=ObjectMeta(generateName="web-"), spec=msgspec.Raw(b'{"unknown": [1,  2]}'))
    assert encode(PODS, pod).endswith(b'"spec":{"unknown": [1,  2]}}')
