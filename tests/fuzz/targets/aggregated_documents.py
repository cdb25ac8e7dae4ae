"""Documents of aggregated API servers: read or refused, and whatever they are, our own documents stay as they were."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from steersman.api.generated import Resource
from steersman.server.discovery.documents import Discovery
from steersman.server.discovery.openapi.merge import InvalidSpec, merge_specs, read_spec
from steersman.server.discovery.remote import RemoteVersion, aggregated_version, legacy_rows
from tests.fuzz.documents import values
from tests.fuzz.target import Target
from tests.harness.extension_server import DISCOVERY, V2

GROUP, VERSION = "ice.example.com", "v1"
OWN = {
    "swagger": "2.0",
    "paths": {"/api/": {"get": {}}},
    "definitions": {"com.example.ice.Flavor": {"type": "object", "description": "ours"}},
}
AGGREGATED = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": GROUP},
            "versions": [{"version": VERSION, "resources": [{"resource": "flavors", "verbs": ["get"]}]}],
        }
    ],
}

VALUES = values(st.text(max_size=8))


def check(data: bytes) -> None:
    found = aggregated_version(data, GROUP, VERSION)
    if found is not None:
        own = Discovery(built_in=()).aggregated_apis.body
        remote = RemoteVersion(GROUP, VERSION, 1, 1, found)
        merged = msgspec.json.decode(Discovery(built_in=(), remote=[remote]).aggregated_apis.body)
        assert [each["metadata"]["name"] for each in merged["items"]] == [GROUP]
        assert msgspec.json.decode(own)["items"] == []
    rows = legacy_rows(GROUP, VERSION, data)
    assert rows is None or all(isinstance(row, Resource) and row.group == GROUP for row in rows)
    try:
        spec = read_spec(data, GROUP, VERSION)
    except InvalidSpec:
        return
    merged = merge_specs(OWN, [spec, spec])
    assert all(
        path in OWN["paths"] or path.startswith(f"/apis/{GROUP}/{VERSION}/") for path in merged["paths"]
    )
    for section in ("paths", "definitions"):
        for name, value in OWN[section].items():  # type: ignore[attr-defined]
            kept = {key: each for key, each in merged[section][name].items() if not key.startswith("x-")}
            assert kept == value
    msgspec.json.encode(merged)


TARGET = Target(
    "aggregated_documents",
    check,
    (
        msgspec.json.encode(V2),
        msgspec.json.encode(DISCOVERY),
        msgspec.json.encode(AGGREGATED),
        b'{"swagger": "2.0", "paths": {"/apis/ice.example.com/v1/x": {"$ref": "#/definitions/a"}}, '
        b'"definitions": {"a": {"$ref": "#/definitions/a"}}}',
    ),
    st.fixed_dictionaries(
        {"swagger": st.just("2.0")},
        optional={
            "paths": st.dictionaries(st.just("/apis/ice.example.com/v1/x"), VALUES, max_size=2),
            "definitions": st.dictionaries(st.sampled_from(("a", "com.example.ice.Flavor")), VALUES),
        },
    ).map(msgspec.json.encode),
    (b'"$ref"', b'"#/definitions/', b'"definitions"', b'"paths"', b'"resources"', b'"versions"'),
)
