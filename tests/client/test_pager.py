from __future__ import annotations

from typing import Any

import pytest

from steersman.api.errors import Expired
from steersman.api.kinds import PODS
from steersman.client.http import HttpApi
from steersman.client.pager import Part, list_all


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def page(server: Any, *names: str, token: str = "", version: str = "9") -> None:
    metadata = {"resourceVersion": version, "continue": token}
    server.answer({"metadata": metadata, "items": [pod(name) for name in names]})


async def read(api: HttpApi, **options: Any) -> list[tuple[list[str], bool]]:
    parts: list[Part[Any]] = [part async for part in list_all(api, PODS, "n", **options)]
    return [([item.metadata.name for item in part.items], part.afresh) for part in parts]


async def test_pages_follow_each_other_until_there_is_no_more(api: HttpApi, server: Any) -> None:
    page(server, "a", "b", token="t1")
    page(server, "c", token="t2")
    page(server, "d")
    assert await read(api, page_size=2) == [(["a", "b"], False), (["c"], False), (["d"], False)]
    assert [asked.query for asked in server.asked] == [
        {"limit": "2"},
        {"limit": "2", "continue": "t1"},
        {"limit": "2", "continue": "t2"},
    ]


async def test_a_version_is_asked_for_once_and_selectors_every_time(api: HttpApi, server: Any) -> None:
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


async def test_when_the_snapshot_is_forgotten_halfway_everything_is_read_afresh(
    api: HttpApi, server: Any
) -> None:
    page(server, "a", token="t1")
    server.refuse(410, "Expired")
    page(server, "b", "c")
    assert await read(api, page_size=1, resource_version="5") == [(["a"], False), (["b", "c"], True)]
    assert server.asked[2].query == {"resourceVersion": "5"}


async def test_a_version_too_old_from_the_start_is_the_callers_to_handle(api: HttpApi, server: Any) -> None:
    server.refuse(410, "Expired")
    with pytest.raises(Expired):
        await read(api, resource_version="5")


async def test_all_can_be_asked_for_at_once(api: HttpApi, server: Any) -> None:
    page(server, "a", "b")
    assert await read(api, page_size=0) == [(["a", "b"], False)]
    assert server.asked[0].query == {}
