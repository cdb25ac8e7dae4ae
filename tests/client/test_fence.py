"""A write asks whether it may be sent when it has its socket, and not before it waits for one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from steersman.api.errors import Unreachable
from steersman.api.kinds import PODS
from steersman.client.config import ClientConfig
from steersman.client.http import HttpApi, SharedClientState

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}


async def test_what_is_not_permitted_is_not_sent_and_reads_are(server: Any) -> None:
    async with HttpApi(ClientConfig(server=server.url), fence=lambda: False) as api:
        with pytest.raises(
            Unreachable, match="create pods was not sent: this process is no longer the leader"
        ) as caught:
            await api.create(PODS, "n", POD)
        assert not caught.value.uncertain
        server.answer(POD)
        await api.get(PODS, "n", "a")
        server.stream(b"", hold=False)
        assert [event async for event in api.watch(PODS)] == []
    assert [asked.method for asked in server.asked] == ["GET", "GET"]


async def test_a_write_that_waited_for_its_turn_is_not_sent_if_it_may_no_longer(server: Any) -> None:
    permitted = True
    arrived, leave = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await leave.wait()
        return web.json_response(POD)

    server.answers.append(answer)
    root = HttpApi(ClientConfig(server=server.url), shared=SharedClientState(connections=1))
    async with root, root.with_user_agent("mine", fence=lambda: permitted) as api, asyncio.timeout(10):
        first = asyncio.create_task(root.get(PODS, "n", "a"))
        await arrived.wait()
        late = asyncio.create_task(api.create(PODS, "n", POD))
        await asyncio.sleep(0)
        permitted = False
        leave.set()
        await first
        with pytest.raises(Unreachable, match="was not sent"):
            await late
    assert len(server.asked) == 1
