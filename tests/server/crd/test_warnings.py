from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.crd.warnings import deprecation, finalizers, warnings


def definition(
    spec: dict[str, Any] | None = None, *versions: dict[str, Any], **schema: Any
) -> CustomResourceDefinition:
    given = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
    }
    return msgspec.convert(
        {
            "spec": {
                "group": "x.test",
                "names": {"kind": "Widget"},
                "versions": versions or (given,),
                **(spec or {}),
            }
        },
        CustomResourceDefinition,
    )


def test_a_definition_that_asks_for_nothing_special_needs_no_warning() -> None:
    assert warnings(definition(properties={"x": {"type": "string", "format": "date", "pattern": "x"}})) == []


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"format": "shoe-size", "type": "string"}, 'unrecognized format "shoe-size"'),
        ({"format": "int32", "type": "number"}, 'unrecognized format "int32"'),
    ],
)
def test_what_is_not_checked_is_told(schema: dict[str, Any], text: str) -> None:
    inside = {"properties": {"a": {"type": "array", "items": schema}, "b": {"anyOf": [schema]}}}
    assert warnings(definition(**inside)) == [text]


def test_a_conversion_webhook_comes_without_warnings() -> None:
    assert warnings(definition({"conversion": {"strategy": "Webhook"}})) == []


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("v1", ""),
        ("v1beta1", "x.test/v1beta1 Widget is deprecated; use x.test/v1 Widget"),
        ("v1alpha1", "gone soon"),
        ("v2alpha1", ""),
    ],
)
def test_users_of_a_deprecated_version_are_told_of_a_better_one(version: str, text: str) -> None:
    made = definition(
        None,
        {"name": "v1", "served": True, "storage": True},
        {"name": "v1beta1", "served": True, "storage": False, "deprecated": True},
        {
            "name": "v1alpha1",
            "served": True,
            "storage": False,
            "deprecated": True,
            "deprecationWarning": "gone soon",
        },
        {"name": "v2alpha1", "served": True, "storage": False},
    )
    assert deprecation(made, version) == text


def test_a_finalizer_others_might_use_too_is_warned_of_once() -> None:
    new = ObjectMeta(finalizers=("mine", "x.test/mine", "x.test", "orphan"))
    told = finalizers(new)
    assert [text.split(":")[1].strip() for text in told] == ['"mine"', '"x.test"']
    assert "including a path (/)" in told[1]
    assert finalizers(new, new) == []
