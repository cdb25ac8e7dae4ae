"""The clients that controllers write with."""

from __future__ import annotations

import pytest

from steersman.client.connection import Connection
from steersman.client.http import HttpApi
from steersman.controllers import garbagecollector, namespace, ttlafterfinished
from steersman.manager.accounts import Accounts


@pytest.mark.parametrize("own", [False, True])
async def test_each_controller_may_ask_as_fast_as_upstreams_does(own: bool) -> None:
    async with HttpApi(Connection("https://127.0.0.1:1"), qps=20, burst=30) as root:
        accounts = Accounts(root, own=own)
        paces = {}
        for module in (garbagecollector, namespace, ttlafterfinished):
            client = accounts.client(module.controller)
            paces[module.controller.name] = (client.qps, client.burst)
        await accounts.close()
    assert paces == {
        "garbage-collector-controller": (40, 30),
        "namespace-controller": (400, 3000),
        "ttl-after-finished-controller": (20, 30),
    }
