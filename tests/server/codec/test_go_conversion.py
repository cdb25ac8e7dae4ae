"""Documents as Go's converter of unstructured objects reads them: numbers that it converts, and its words for the others."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated.apps_v1 import Deployment
from steersman.api.generated.core_v1 import Secret
from steersman.server.codec.go_conversion import ConversionError, converted, is_ambiguous


@pytest.mark.parametrize(
    ("spec", "becomes"),
    [
        ({"replicas": 2.0}, {"replicas": 2}),
        ({"replicas": 2**40 + 3}, {"replicas": 3}),
        ({"replicas": 2**31}, {"replicas": -(2**31)}),
        ({"replicas": None}, {"replicas": None}),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 2.0}}},
            {"strategy": {"rollingUpdate": {"maxSurge": 2}}},
        ),
        ({"unknown": 1.5}, {"unknown": 1.5}),
    ],
)
def test_numbers_are_converted_to_the_type_of_their_field(
    spec: dict[str, Any], becomes: dict[str, Any]
) -> None:
    assert converted(Deployment, {"spec": spec}) == {"spec": becomes}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"replicas": True}}, "unrecognized type: int32"),
        ({"spec": {"paused": 1}}, "unrecognized type: bool"),
        ({"spec": {"selector": []}}, "cannot restore struct from: slice"),
        ({"metadata": {"labels": 5}}, "cannot restore map from int64"),
        ({"metadata": {"name": 5}}, "cannot convert int64 to string"),
        ({"metadata": {"finalizers": "x"}}, "cannot restore slice from string"),
        ({"metadata": {"ownerReferences": [5]}}, "cannot restore struct from: int64"),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ],
)
def test_other_values_are_refused_in_the_words_of_go(document: dict[str, Any], why: str) -> None:
    with pytest.raises(ConversionError) as refusal:
        converted(Deployment, document)
    assert str(refusal.value) == why


def test_base64_is_decoded_by_way_of_json() -> None:
    assert converted(Secret, {"data": {"a": "YWJj\n"}}) == {"data": {"a": "YWJj"}}
    with pytest.raises(
        ConversionError, match="error decoding from json: illegal base64 data at input byte 0"
    ):
        converted(Secret, {"data": {"a": "!"}})


def test_only_numbers_and_booleans_are_read_differently() -> None:
    assert not is_ambiguous({"a": ["b", {"c": 5}], "d": None})
    assert all(is_ambiguous({"a": [value]}) for value in (True, 1.0, 2**31, -(2**31) - 1))
