"""The name that a request is authorised for, and the objects that it selects."""

from __future__ import annotations

import pytest

from steersman.api.errors import BadRequest
from steersman.server.auth.users import ADMIN
from steersman.server.registry.resources import Registry
from steersman.server.rest.request import ListOptions, Request
from steersman.server.rest.selection import requested_name, select, select_requested

SECRETS = Registry().find("", "v1", "secrets")


def request(name: str, field_selector: str = "", verb: str = "watch") -> Request:
    return Request(ADMIN, verb, SECRETS, "a", name, list_options=ListOptions(field_selector=field_selector))


@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
@pytest.mark.parametrize(
    "selector", ["metadata.name=other", "metadata.name!=other", "metadata.namespace=a", "type=Opaque"]
)
def test_a_field_selector_must_require_the_name_that_was_authorised(verb: str, selector: str) -> None:
    with pytest.raises(BadRequest, match=r"^fieldSelector metadata\.name doesn't match requested name$"):
        select_requested(request("allowed", selector, verb))


@pytest.mark.parametrize("selector", ["", ",", "metadata.name=allowed", "metadata.name==allowed,type=Opaque"])
def test_a_name_selects_that_object_alone(selector: str) -> None:
    assert select_requested(request("allowed", selector)).name == "allowed"


@pytest.mark.parametrize(
    ("verb", "path_name", "selector", "name"),
    [
        ("list", "", "metadata.name=a", "a"),
        ("watch", "", "type=Opaque,metadata.name==a", "a"),
        ("watch", "b", "metadata.name=a", "b"),
        ("list", "", "metadata.name!=a", ""),
        ("list", "", "metadata.name=a=b", ""),
        ("list", "", "metadata.name=..", ""),
        ("list", "", "metadata.name=a/b", ""),
        ("deletecollection", "", "metadata.name=a", ""),
    ],
)
def test_the_authorised_name_is_the_one_that_is_selected(
    verb: str, path_name: str, selector: str, name: str
) -> None:
    assert requested_name(verb, path_name, selector) == name


@pytest.mark.parametrize(
    ("group", "plural", "field", "why"),
    [
        ("", "pods", "spec.foo", "field label not supported: spec.foo"),
        (
            "apps",
            "replicasets",
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("batch", "jobs", "status.failed", 'field label "status.failed" not supported for Job'),
        (
            "resource.k8s.io",
            "resourceslices",
            "spec.pool",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool",
        ),
    ],
)
def test_a_field_that_cannot_be_selected_is_refused_in_the_words_of_its_kind(
    group: str, plural: str, field: str, why: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        select(Registry().find(group, "v1", plural), field_selector=f"{field}=x")
    assert str(refused.value) == why


def test_the_addresses_of_pods_are_selected_by_no_value() -> None:
    pods = Registry().find("", "v1", "pods")
    selected = select(pods, field_selector="status.podIPs=10.0.0.1")
    assert selected.test is not None
    assert not selected.test(pods.type())
