"""The clients that controllers write with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.clock import RealClock
from steersman.api.generated import load
from steersman.api.kinds import SERVICEACCOUNTS
from steersman.client import kubeconfig
from steersman.client.auth import FetchedTokenAuth, Token
from steersman.client.config import ClientConfig
from steersman.client.http import HttpApi
from steersman.client.round_trip import RequestAttempt
from steersman.controllers import (
    certificates,
    garbagecollector,
    namespace,
    serviceaccounttoken,
    ttlafterfinished,
)
from steersman.manager.client_builder import LIFETIME, ClientBuilder
from steersman.manager.version import user_agent
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server


@pytest.mark.parametrize("own", [False, True])
async def test_each_controller_may_ask_as_fast_as_upstreams_does(own: bool) -> None:
    async with HttpApi(ClientConfig("https://127.0.0.1:1"), qps=20, burst=30) as root:
        accounts = ClientBuilder(root, use_service_accounts=own)
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


@pytest.mark.parametrize(
    ("own", "controller", "agent"),
    [
        (True, garbagecollector.controller, "system:serviceaccount:kube-system:generic-garbage-collector"),
        (False, garbagecollector.controller, "generic-garbage-collector"),
        (True, serviceaccounttoken.controller, "tokens-controller"),
    ],
)
async def test_clients_name_themselves_as_upstreams_do(own: bool, controller: Any, agent: str) -> None:
    async with HttpApi(ClientConfig("https://127.0.0.1:1"), user_agent=user_agent()) as root:
        accounts = ClientBuilder(root, use_service_accounts=own)
        assert accounts.client(controller).user_agent == f"{user_agent()}/{agent}"
        await accounts.close()


class Wall:
    """A clock on the wall that is set by hand."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


@asynccontextmanager
async def manager(done: list[RequestAttempt], where: Path) -> AsyncIterator[tuple[HttpApi, LocalApi]]:
    """The manager's own client of a cluster where no controller has an account yet, and one that may do anything."""
    clock = RealClock()
    boot, server = Bootstrap.generate(clock.now), Server(clock)
    edge = await boot.serve(server, bootstrap_server(server))
    try:
        (where / "config").write_bytes(boot.kubeconfig(edge.url, "system:kube-controller-manager", ()))
        connection = kubeconfig.load(str(where / "config"))
        async with HttpApi(connection, qps=0, on_request=done.append) as root:
            yield root, LocalApi(server)
    finally:
        await edge.close()


async def whoami(api: HttpApi) -> str:
    kind = load("authentication.k8s.io", "v1", "SelfSubjectReview").untyped
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await api.create(kind, "", review)
    return str(answer["status"]["userInfo"]["username"])


async def test_each_controller_is_its_own_account_which_is_made_and_whose_token_is_renewed_in_time(
    tmp_path: Path,
) -> None:
    done: list[RequestAttempt] = []
    wall_clock = Wall(datetime.now(UTC))

    def asked() -> int:
        return sum(each.resource == "serviceaccounts/token" and each.code == 201 for each in done)

    async with manager(done, tmp_path) as (root, admin):
        accounts = ClientBuilder(root, use_service_accounts=True, now=wall_clock)
        api = accounts.client(ttlafterfinished.controller)
        shared = [
            accounts.client(module.controller) for module in (certificates.approver, certificates.signer)
        ]
        assert accounts.client(serviceaccounttoken.controller).config == root.config, (
            "what accounts depend on"
        )
        await accounts.fetch_tokens()
        assert asked() == 2, "one token for each account"
        assert await whoami(api) == "system:serviceaccount:kube-system:ttl-after-finished-controller"
        for each in shared:
            assert await whoami(each) == "system:serviceaccount:kube-system:certificate-controller"
        made = await admin.get(SERVICEACCOUNTS, "kube-system", "ttl-after-finished-controller")
        assert made.metadata.uid
        for passed, tokens_asked in ((0.79, 2), (0.81, 3)):
            wall_clock.at = datetime.now(UTC) + timedelta(seconds=LIFETIME * passed)
            await whoami(api)
            assert asked() == tokens_asked, passed
        await accounts.close()


async def test_an_account_that_is_deleted_is_made_anew(tmp_path: Path) -> None:
    done: list[RequestAttempt] = []
    async with manager(done, tmp_path) as (root, admin):
        accounts = ClientBuilder(root, use_service_accounts=True)
        api = accounts.client(ttlafterfinished.controller)
        before = await whoami(api)
        await admin.delete(SERVICEACCOUNTS, "kube-system", "ttl-after-finished-controller")
        assert await whoami(api) == before
        await accounts.close()


@given(
    lifetime=st.integers(600, 100_000),
    steps=st.lists(st.floats(0, 5000), max_size=30),
    skew=st.floats(-60, 60),
)
async def test_a_token_in_use_never_ends_while_new_ones_are_to_be_had(
    lifetime: int, steps: list[float], skew: float
) -> None:
    wall_clock = Wall(datetime(2026, 1, 1, tzinfo=UTC))
    ends: dict[str, datetime] = {}

    async def issue() -> Token:
        name = f"token-{len(ends)}"
        ends[name] = wall_clock.at + timedelta(seconds=lifetime)
        return Token(name, ends[name] + timedelta(seconds=skew))

    fetched = FetchedTokenAuth(issue, wall_clock)
    for step in steps:
        wall_clock.at += timedelta(seconds=step)
        used = (await fetched.credential()).authorization.removeprefix("Bearer ")
        left = (ends[used] - wall_clock.at).total_seconds()
        assert left >= lifetime / 5 - 60
    assert len(ends) <= 1 + sum(steps) / (0.8 * (lifetime - 60))
