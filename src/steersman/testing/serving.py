"""A served cluster: the HTTPS endpoint of its API server, and a kubeconfig for clients in other processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from steersman.intent.actions import FileUnreadable
from steersman.server.auth.ca import write_private
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.sim.world import World
from steersman.testing.template import Plan
from steersman.testing.threaded import RealTimeWorld

T = TypeVar("T")

TIMED = ("", "v1", "events")
"""Objects that expire: their lifetime starts anew."""


class Serving:
    """Continues a world in real time, over HTTPS."""

    def __init__(self, world: World, speed: float, plan: Plan) -> None:
        wall = datetime.now(UTC)
        # Certificates are checked by real time, and time never goes back.
        self.runtime = RealTimeWorld(world.seed, world.server.store.fork(), max(wall, world.now()), speed)
        self._addresses = world.server.webhook_addresses
        self._folder = tempfile.TemporaryDirectory(prefix="steersman-")
        self._boot = Bootstrap.generate(lambda: datetime.now(UTC))
        self.url = self.runtime.run(self._open(plan))
        """The URL of the API server."""
        self.kubeconfig = Path(self._folder.name, "kubeconfig")
        """An administrator's kubeconfig."""
        write_private(self.kubeconfig, self._boot.kubeconfig(self.url))

    async def _open(self, plan: Plan) -> str:
        server = self.runtime.server
        server.webhook_addresses = self._addresses
        server.renew(server.registry.find(*TIMED))
        authority = self._boot.authority.pair.cert
        self.authorizer = bootstrap_server(server, client_ca=authority, disabled_plugins=plan.missing)
        self._edge = await self._boot.serve(server, self.authorizer)
        return self._edge.url

    def call(self, do: Callable[[], T]) -> T:
        """Run a function in the cluster's thread."""

        async def done() -> T:
            return do()

        return self.runtime.run(done())

    def read(self, path: str) -> bytes:
        """The files that flags name: the server's own keys."""
        match path:
            case "ca.crt":
                return self._boot.authority.pair.cert
            case "ca.key":
                return self._boot.authority.pair.key
            case "sa.key":
                return self._boot.keys.pem
        raise FileUnreadable(f"a simulated cluster has no file {path!r}")

    def close(self) -> None:
        """Stop listening, and remove the kubeconfig."""
        self.runtime.run(self._edge.close())
        self._folder.cleanup()
