"""Discovery documents, legacy and aggregated."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from steersman.api.errors import NotAcceptable, NotFound
from steersman.api.generated import resources
from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.server.discovery.documents import (
    AGGREGATED,
    CustomResource,
    Discovery,
    custom_resources,
    negotiate_discovery,
    version_order,
)


def custom(
    group: str = "example.com", version: str = "v1", plural: str = "things", **more: Any
) -> CustomResource:
    return CustomResource(group, version, "Thing", plural, "thing", True, storage_version="v1", **more)


def entries(document: Any) -> dict[str, Any]:
    return {entry["name"]: entry for entry in document["resources"]}


def test_the_groups_come_in_the_order_of_their_priority_with_custom_ones_and_metrics_last() -> None:
    discovery = Discovery([custom("b.example"), custom("a.example", "v2")], metrics=True)
    names = [group["name"] for group in discovery.apis()["groups"]]
    assert names[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    # By the names of their APIServices: v1.b.example, v2.a.example.
    assert names[-3:] == ["b.example", "a.example", "metrics.k8s.io"]
    aggregated = json.loads(discovery.aggregated_apis.body)
    assert [item["metadata"]["name"] for item in aggregated["items"]][-3:] == [
        "a.example",
        "b.example",
        "metrics.k8s.io",
    ]


def test_the_best_version_of_a_group_is_preferred() -> None:
    discovery = Discovery(
        [custom(version=version) for version in ("v1beta1", "v2", "v10", "v1alpha1", "odd")]
    )
    group = discovery.group("example.com")
    assert [each["version"] for each in group["versions"]] == ["v10", "v2", "v1beta1", "v1alpha1", "odd"]
    assert group["preferredVersion"] == {"groupVersion": "example.com/v10", "version": "v10"}
    assert discovery.group("autoscaling")["preferredVersion"]["version"] == "v2"


def test_versions_sort_by_stability_then_age_then_name() -> None:
    ordered = ["v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "latest", "vnext"]
    mixed = ["v1alpha1", "vnext", "v1", "v2beta1", "latest", "v1beta1", "v2", "v1beta2"]
    assert sorted(mixed, key=version_order) == ordered


def test_a_subresource_of_another_group_says_so() -> None:
    found = entries(Discovery().resources("apps", "v1"))
    assert found["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ("get", "patch", "update"),
    }
    assert "group" not in found["deployments/status"]


def test_what_is_not_stored_has_no_storage_hash() -> None:
    found = entries(Discovery().resources("", "v1"))
    assert "storageVersionHash" in found["pods"]
    assert "storageVersionHash" not in found["bindings"]
    assert "storageVersionHash" not in found["componentstatuses"]


def test_every_built_in_resource_is_told_in_both_forms() -> None:
    discovery = Discovery()
    told = [
        (item["metadata"].get("name", ""), version["version"], resource["resource"])
        for document in (discovery.aggregated_api, discovery.aggregated_apis)
        for item in json.loads(document.body)["items"]
        for version in item["versions"]
        for resource in version["resources"]
    ]
    assert told == [(row.group, row.version, row.plural) for row in resources()]
    for row in resources():
        assert row.plural in entries(discovery.resources(row.group, row.version))


@pytest.mark.parametrize(("group", "version"), [("nope", "v1"), ("apps", "v9"), ("", "v2")])
def test_what_is_not_served_is_not_found(group: str, version: str) -> None:
    with pytest.raises(NotFound):
        Discovery().resources(group, version)
    if group != "apps":
        with pytest.raises(NotFound):
            Discovery().group(group)


def test_the_tag_changes_when_what_is_served_does_and_only_then() -> None:
    plain, again, more = Discovery(), Discovery(), Discovery([custom()])
    assert plain.aggregated_apis.etag == again.aggregated_apis.etag != more.aggregated_apis.etag
    assert plain.aggregated_api.etag == more.aggregated_api.etag
    assert plain.aggregated_api.etag.startswith('"')
    assert plain.aggregated_api.etag.endswith('"')


def test_a_custom_resource_cannot_take_the_place_of_a_built_in_version() -> None:
    discovery = Discovery([custom("apps", "v1"), custom("apps", "v2")])
    assert "things" not in entries(discovery.resources("apps", "v1"))
    assert "things" in entries(discovery.resources("apps", "v2"))


def test_metrics_are_served_when_they_are() -> None:
    found = entries(Discovery(metrics=True).resources("metrics.k8s.io", "v1beta1"))
    assert {name: entry["kind"] for name, entry in found.items()} == {
        "nodes": "NodeMetrics",
        "pods": "PodMetrics",
    }
    with pytest.raises(NotFound):
        Discovery().resources("metrics.k8s.io", "v1beta1")


def test_a_resource_whose_definition_goes_cannot_be_written() -> None:
    found = entries(Discovery([custom(terminating=True)]).resources("example.com", "v1"))
    assert found["things"]["verbs"] == ("delete", "deletecollection", "get", "list", "watch")


# -- definitions ------------------------------------------------------------------------------


def crd(*conditions: str, **spec: Any) -> CustomResourceDefinition:
    document = {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "asked", "kind": "Asked"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}},
                {"name": "v2", "served": False, "storage": False},
                {
                    "name": "v3",
                    "served": True,
                    "storage": False,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-map-type": "atomic"}},
                },
            ],
            **spec,
        },
        "status": {
            "acceptedNames": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "Things"},
            "conditions": [{"type": each, "status": "True"} for each in conditions],
            "storedVersions": ["v1"],
        },
    }
    return msgspec.convert(document, CustomResourceDefinition)


def test_a_definition_serves_nothing_before_it_is_established() -> None:
    assert custom_resources(crd("NamesAccepted")) == ()


def test_a_definition_serves_its_served_versions_under_the_names_it_was_given() -> None:
    first, third = custom_resources(crd("Established"))
    assert (first.version, first.plural, first.kind, first.list_kind) == ("v1", "things", "Thing", "Things")
    assert (first.status, first.scale, first.schema) == (True, False, None)
    assert (third.version, third.status, third.storage_version) == ("v3", False, "v1")
    assert third.schema == {"type": "object", "x-kubernetes-map-type": "atomic"}
    assert not first.terminating
    assert custom_resources(crd("Established", "Terminating"))[0].terminating


# -- negotiation ------------------------------------------------------------------------------

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    "accept", [V2, f"application/json,{V2}", f"{V2.replace('v2', 'v2beta1')},{V2},application/json"]
)
def test_who_can_read_the_aggregated_form_gets_it(accept: str) -> None:
    assert negotiate_discovery(accept).target == AGGREGATED


@pytest.mark.parametrize(
    "accept", ["", "application/json", f"{V2.replace('v2', 'v2beta1')},application/json"]
)
def test_who_cannot_gets_the_old_form(accept: str) -> None:
    assert negotiate_discovery(accept).target is None


def test_who_reads_only_what_is_gone_gets_nothing() -> None:
    with pytest.raises(NotAcceptable):
        negotiate_discovery(V2.replace("v2", "v2beta1"))
