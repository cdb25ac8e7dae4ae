"""A control plane at a socket, for each test its own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from steersman.api.clock import RealClock
from steersman.client.http import HttpApi
from steersman.client.kubeconfig import load
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.auth.users import User
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.http.app import ApiServer
from steersman.server.server import Server

TOKENS = {
    "admin-token": User("root", groups=("system:masters",)),
    "nobody-token": User("nobody"),
    "viewer-token": User("viewer"),
}


@dataclass
class Plane:
    """A server, its edge, and how to reach it."""

    server: Server
    boot: Bootstrap
    authorizer: RBACAuthorizer
    edge: ApiServer
    directory: Path

    def kubeconfig(self, user: str = "admin", *groups: str) -> Path:
        path = self.directory / f"{user}.kubeconfig"
        path.write_bytes(self.boot.kubeconfig(self.edge.url, user, groups or ("system:masters",)))
        return path

    def connect(self) -> HttpApi:
        return HttpApi(load(str(self.kubeconfig())), qps=0)

    @asynccontextmanager
    async def session(self, token: str = "admin-token") -> AsyncIterator[aiohttp.ClientSession]:
        trusted = ssl.create_default_context(cadata=self.boot.authority.pair.cert.decode())
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=trusted)
        async with aiohttp.ClientSession(self.edge.url, connector=connector, headers=headers) as session:
            yield session


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    clock = RealClock()
    server = Server(clock)
    boot = Bootstrap.generate(clock.now)
    authorizer = bootstrap_server(server, client_ca=boot.authority.pair.cert)
    edge = await boot.serve(server, authorizer, tokens=TOKENS)
    try:
        yield Plane(server, boot, authorizer, edge, tmp_path)
    finally:
        await edge.close()
