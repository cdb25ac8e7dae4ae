"""Discovery beside a real API server's: the same documents, custom resources included."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from steersman.api.errors import NotAcceptable
from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.server.discovery.documents import AGGREGATED, Discovery, custom_resources, negotiate_discovery
from tests.harness.child_process import until
from tests.harness.envtest import RealPlane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def definition(group: str, plural: str, scope: str, *versions: str, **more: Any) -> dict[str, Any]:
    kind = plural.capitalize().removesuffix("s")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, **more.pop("names", {})},
            "versions": [
                {"name": name, "served": True, "storage": place == 0, "schema": schema, **more}
                for place, name in enumerate(versions)
            ],
        },
    }


SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
CUSTOM = (
    definition(
        "zoo.example", "lions", "Namespaced", "v1", names={"shortNames": ["li"], "categories": ["all"]}
    ),
    definition("zoo.example", "apes", "Cluster", "v1", subresources={"status": {}, "scale": SCALE}),
    definition("farm.example", "cows", "Namespaced", "v1beta1", "v2", "v1alpha3", "v10", "odd", "v1", "even"),
    definition("any.example", "bees", "Namespaced", "v3", subresources={"status": {}}),
)


class Asked:
    """The documents of a real server, and a `Discovery` of what it serves."""

    def __init__(self, plane: RealPlane) -> None:
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", plane.port, context=plane.tls(), timeout=30
        )
        self.address = f"127.0.0.1:{plane.port}"
        for each in CUSTOM:
            assert self.answer(DEFINITIONS, method="POST", body=each)[0] == 201
        names = [
            f"{version['name']}.{each['spec']['group']}"
            for each in CUSTOM
            for version in each["spec"]["versions"]
        ]

        def registered() -> bool:
            apis = self.document("/apis")
            listed = [f"{v['version']}.{g['name']}" for g in apis["groups"] for v in g["versions"]]
            return (
                all(name in listed for name in names)
                and len(self.document("/apis/zoo.example/v1")["resources"]) == 4
            )

        assert plane.apiserver is not None
        until(registered, plane.apiserver, 15, "the custom resources are served", step=0.05)
        found = msgspec.convert(self.document(DEFINITIONS)["items"], list[CustomResourceDefinition])
        self.discovery = Discovery(each for one in found for each in custom_resources(one))

    def answer(
        self, path: str, accept: str = "application/json", *, method: str = "GET", body: Any = None
    ) -> tuple[int, bytes, str]:
        headers = {"Accept": accept, "Content-Type": "application/json"}
        self._connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Content-Type", "")

    def document(self, path: str, accept: str = "application/json") -> Any:
        status, text, _ = self.answer(path, accept)
        return json.loads(text) if status == 200 else {"resources": ()}


@pytest.fixture(scope="module")
def plane() -> Iterator[RealPlane]:
    """One of its own: custom resources of other tests would show in what is compared here."""
    with RealPlane.start() as running:
        yield running


@pytest.fixture(scope="module")
def asked(plane: RealPlane) -> Iterator[Asked]:
    asked = Asked(plane)
    yield asked
    for each in CUSTOM:
        asked.answer(f"{DEFINITIONS}/{each['metadata']['name']}", method="DELETE")


def plain(document: Any) -> Any:
    return json.loads(document if isinstance(document, bytes) else msgspec.json.encode(document))


def test_the_lists_of_versions_and_groups_are_the_real_ones(asked: Asked) -> None:
    assert plain(asked.discovery.api(asked.address)) == asked.document("/api")
    assert plain(asked.discovery.apis()) == asked.document("/apis")


def test_every_group_and_version_answers_as_the_real_one(asked: Asked) -> None:
    groups = asked.document("/apis")["groups"]
    for group in groups:
        assert plain(asked.discovery.group(group["name"])) == asked.document(f"/apis/{group['name']}")
    versions = [("", "v1", "/api/v1")]
    versions += [
        (g["name"], v["version"], f"/apis/{v['groupVersion']}") for g in groups for v in g["versions"]
    ]
    for group, version, path in versions:
        ours, theirs = plain(asked.discovery.resources(group, version)), asked.document(path)
        if any(each["spec"]["group"] == group for each in CUSTOM):
            # A real server lists custom resources in the order of a Go map: as it comes.
            for document in (ours, theirs):
                document["resources"].sort(key=lambda entry: entry["name"])
        assert ours == theirs


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_the_aggregated_document_is_the_real_one(asked: Asked, path: str) -> None:
    ours = asked.discovery.aggregated_api if path == "/api" else asked.discovery.aggregated_apis
    assert plain(ours.body) == asked.document(path, AGGREGATED_TYPE)


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/*",
        "application/json",
        "application/yaml",
        "text/html",
        "text/html, */*;q=0.1",
        "application/yaml;q=0.5, application/json;q=0.4",
        AGGREGATED_TYPE,
        AGGREGATED_TYPE.replace("v2", "v2beta1"),
        AGGREGATED_TYPE.replace("v2", "v2beta1") + ",application/json",
        f"{AGGREGATED_TYPE},{AGGREGATED_TYPE.replace('v2', 'v2beta1')},application/json",
        f"application/json,{AGGREGATED_TYPE}",
        f"application/json;q=0.9,{AGGREGATED_TYPE};q=0.1",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
        "application/json;q=x, application/yaml",
        "json, application/yaml",
        "a/b/c, application/yaml",
    ],
)
def test_an_accept_header_is_read_as_a_real_server_reads_it(asked: Asked, accept: str) -> None:
    status, _, content_type = asked.answer("/apis", accept)
    if status != 200:
        with pytest.raises(NotAcceptable):
            negotiate_discovery(accept)
        assert status == NotAcceptable.code
    else:
        choice = negotiate_discovery(accept)
        assert content_type == (AGGREGATED_TYPE if choice.target == AGGREGATED else choice.media_type)
