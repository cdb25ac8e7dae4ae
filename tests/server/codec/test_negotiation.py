"""Content negotiation by Accept headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import NotAcceptable
from steersman.server.codec.negotiation import (
    JSON,
    PROTOBUF,
    SERVED,
    YAML,
    MediaTypeOptions,
    Target,
    negotiate,
    own_kind_or_meta,
)

TABLE = Target("meta.k8s.io", "v1", "Table")


@pytest.mark.parametrize(
    ("accept", "choice"),
    [
        ("", MediaTypeOptions(JSON)),
        ("*/*", MediaTypeOptions(JSON)),
        ("*", MediaTypeOptions(JSON)),
        ("application/*", MediaTypeOptions(JSON)),
        ("application/yaml", MediaTypeOptions(YAML)),
        ("application/json;pretty=1", MediaTypeOptions(JSON, pretty=True)),
        ("application/json;stream=watch", MediaTypeOptions(JSON, stream="watch")),
        ("application/json;stream=other, application/yaml", MediaTypeOptions(YAML)),
        ("application/json;sv=v9, application/yaml", MediaTypeOptions(YAML)),
        (f"{PROTOBUF},application/json", MediaTypeOptions(PROTOBUF)),
        (f"{PROTOBUF};q=0.5,application/json", MediaTypeOptions(JSON)),
        (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json;q=0.1", MediaTypeOptions(JSON)),
        ("application/json;q=0.2, application/yaml;q=0.8", MediaTypeOptions(YAML)),
        ("*/*, application/yaml", MediaTypeOptions(YAML)),
        ("application/*, application/yaml", MediaTypeOptions(YAML)),
        ("nonsense, application/yaml", MediaTypeOptions(YAML)),
        (" application/json ; pretty = 1 ", MediaTypeOptions(JSON, pretty=True)),
    ],
)
def test_the_most_wanted_of_what_is_served_is_chosen(accept: str, choice: MediaTypeOptions) -> None:
    assert negotiate(accept) == choice


@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/cbor", "application/json;as=Table;g=meta.k8s.io;v=v1", ",", "application"],
)
def test_what_is_not_served_is_refused_with_what_is(accept: str) -> None:
    with pytest.raises(NotAcceptable, match=f"application/json, application/yaml, {PROTOBUF}$") as refused:
        negotiate(accept)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("accept", "target"),
    [
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", TABLE),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", TABLE._replace(version="v1beta1")),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", None),
        ("application/json;as=Table;v=v1,application/json", None),
        ("application/json;as=Chair;v=v1;g=meta.k8s.io,application/json", None),
        ("application/json", None),
        (
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            TABLE._replace(kind="PartialObjectMetadataList"),
        ),
    ],
)
def test_a_clause_with_an_unsupported_kind_is_skipped(accept: str, target: Target | None) -> None:
    assert negotiate(accept, own_kind_or_meta).target == target


@given(st.lists(st.sampled_from(["a/b", "*/*", "application/json", "application/yaml;q=0.5", "x", ";", "/"])))
def test_any_header_is_answered_or_refused(parts: list[str]) -> None:
    accept = ",".join(parts)
    try:
        assert negotiate(accept).media_type in SERVED
    except NotAcceptable:
        assert "*/*" not in parts
        assert JSON not in parts
