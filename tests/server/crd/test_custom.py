from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import Object
from steersman.server.crd.custom import CustomResource, document, encode, read, view

BODY = {
    "apiVersion": "x.test/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "labels": {"l": "1"}, "unknown": 1},
    "spec": {"size": 1, "parts": [{"n": None}]},
    "status": {},
}


class Spec(msgspec.Struct):
    size: int = 0


class Widget(msgspec.Struct):
    metadata: ObjectMeta
    spec: Spec


def test_metadata_is_everybodys_and_the_rest_stays_as_it_came() -> None:
    widget = read(BODY)
    assert widget.metadata == ObjectMeta(name="a", labels={"l": "1"})
    assert widget.content == {"spec": {"size": 1, "parts": [{"n": None}]}, "status": {}}
    assert isinstance(widget, Object)


@pytest.mark.parametrize(
    "body", [msgspec.json.encode(BODY), msgspec.Raw(msgspec.json.encode(BODY)), read(BODY)]
)
def test_any_sort_of_body_is_read(body: object) -> None:
    assert read(body) == read(BODY)


@pytest.mark.parametrize("body", [[], "x", b"[]"])
def test_what_is_no_object_is_refused(body: object) -> None:
    with pytest.raises(ValueError, match="Expected"):
        read(body)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
        (
            {"name": 5, "labels": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
    ],
)
def test_malformed_metadata_is_refused_in_the_words_of_go(given: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read({"metadata": given})


def test_a_document_shares_nothing_with_the_object() -> None:
    widget = read(BODY)
    made = document("x.test/v1", "Widget", widget)
    made["spec"]["parts"].append(1)
    made["metadata"]["labels"]["l"] = "2"
    assert widget == read(BODY)


def test_a_client_may_read_and_write_its_own_type() -> None:
    mine = view(Widget, "x.test/v1", "Widget", read(BODY))
    assert mine.spec.size == 1
    assert read(mine).content == {"spec": {"size": 1}}
    assert view(Object, "x.test/v1", "Widget", read(BODY)) == read(BODY)
    with pytest.raises(ValueError, match="size"):
        view(Widget, "x.test/v1", "Widget", read({**BODY, "spec": {"size": "x"}}))


def test_true_is_not_one() -> None:
    assert read({"spec": {"x": True}}) != read({"spec": {"x": 1}})
    assert read({"spec": {"x": [1, {"y": 2}]}}) == read({"spec": {"x": [1, {"y": 2}]}})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["spec", "status", "x"]), JSON))
def test_encoded_it_is_the_document(content: dict[str, Any]) -> None:
    widget = CustomResource(metadata=ObjectMeta(name="a"), content=content)
    decoded = msgspec.json.decode(encode("x.test/v1", "Widget", widget))
    assert decoded == document("x.test/v1", "Widget", widget)
    assert read(decoded).metadata.name == "a"
