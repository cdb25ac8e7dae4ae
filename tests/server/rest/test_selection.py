"""The name that a request is authorised for, and the objects that it selects."""

from __future__ import annotations

import pytest

from steersman.api.errors import BadRequest
from steersman.server.auth.users import ADMIN
from steersman.server.registry.resources import Registry
from steersman.server.rest.request import ListOptions, Request
from steersman.server.rest.selection import requested_name, select_requested

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
