"""Lists in pages: one snapshot each, read anew when its continue token expires."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.errors import Cause, Expired, ServerTimeout, ServiceUnavailable
from steersman.api.kinds import PODS
from steersman.client.http import HttpApi
from steersman.client.pager import PAGE_SIZE, PageRequest, list_all


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def page(server: Any, *names: str, token: str = "", version: str = "9") -> None:
    metadata = {"resourceVersion": version, "continue": token}
    server.answer({"metadata": metadata, "items": [pod(name) for name in names]})


async def read(api: HttpApi, **options: Any) -> tuple[list[str], str]:
    found = await list_all(api, PODS, "n", **options)
    assert found.continue_ == ""
    return [item.metadata.name for item in found.items], found.resource_version


async def test_pages_are_joined_until_the_last_one(api: HttpApi, server: Any) -> None:
    page(server, "a", "b", token="t1", version="9")
    page(server, "c", token="t2", version="9")
    page(server, "d", version="9")
    assert await read(api, page_size=2) == (["a", "b", "c", "d"], "9")
    assert [asked.query for asked in server.asked] == [
        {"limit": "2"},
        {"limit": "2", "continue": "t1"},
        {"limit": "2", "continue": "t2"},
    ]


async def test_the_resource_version_is_sent_once_and_selectors_every_time(api: HttpApi, server: Any) -> None:
    page(server, "a", token="t1")
    page(server, "b")
    await read(api, resource_version="5", resource_version_match="NotOlderThan", label_selector="x=y")
    assert [asked.query for asked in server.asked] == [
        {
            "limit": "500",
            "labelSelector": "x=y",
            "resourceVersion": "5",
            "resourceVersionMatch": "NotOlderThan",
        },
        {"limit": "500", "labelSelector": "x=y", "continue": "t1"},
    ]


async def test_stale_pages_are_dropped_when_the_continue_token_expires(api: HttpApi, server: Any) -> None:
    page(server, "gone", "kept", token="t1", version="9")
    server.refuse(410, "Expired")
    page(server, "kept", "new", version="12")
    assert await read(api, page_size=2, resource_version="5") == (["kept", "new"], "12")
    assert [asked.query for asked in server.asked] == [
        {"limit": "2", "resourceVersion": "5"},
        {"limit": "2", "continue": "t1"},
        {"resourceVersion": "5"},
    ]


async def test_the_servers_inconsistent_continuation_is_not_used(api: HttpApi, server: Any) -> None:
    page(server, "gone", token="t1", version="9")
    expired = {
        "kind": "Status",
        "status": "Failure",
        "code": 410,
        "reason": "Expired",
        "metadata": {"continue": "inconsistent"},
        "message": "The provided continue parameter is too old to display a consistent list result.",
    }
    server.answer(expired, code=410)
    page(server, "new", version="12")
    assert await read(api, page_size=1) == (["new"], "12")
    assert server.asked[2].query == {}


async def test_an_expired_resource_version_is_raised_for_the_first_page(api: HttpApi, server: Any) -> None:
    server.refuse(410, "Expired")
    with pytest.raises(Expired):
        await read(api, resource_version="5")


async def test_a_full_list_that_expires_too_is_raised(api: HttpApi, server: Any) -> None:
    page(server, "a", token="t1")
    server.refuse(410, "Expired")
    server.refuse(410, "Expired")
    with pytest.raises(Expired):
        await read(api, resource_version="5", resource_version_match="Exact")


async def test_a_page_size_of_zero_lists_all_at_once(api: HttpApi, server: Any) -> None:
    page(server, "a", "b")
    assert await read(api, page_size=0) == (["a", "b"], "9")
    assert server.asked[0].query == {}


async def test_no_page_is_requested_beyond_the_number_of_objects_needed(api: HttpApi, server: Any) -> None:
    page(server, "a", "b", token="t1")
    assert await read(api, page_size=2, at_least=1) == (["a", "b"], "9")
    assert len(server.asked) == 1


def test_only_an_expired_token_restarts_a_list() -> None:
    too_large = ServerTimeout("", causes=(Cause("ResourceVersionTooLarge", "", ""),))
    assert PageRequest("t").restarted(Expired("")) == PageRequest("", 0)
    assert PageRequest("t").restarted(too_large) == PageRequest("", 0)
    assert PageRequest("t").restarted(ServiceUnavailable("")) is None
    assert PageRequest("", PAGE_SIZE).restarted(Expired("")) is None
    assert PageRequest("t", 0).restarted(Expired("")) is None
