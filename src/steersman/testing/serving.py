"""A cluster at a socket: the edge of its API server, and what clients outside need to reach it."""

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
from steersman.testing.threaded import LiveWorld

T = TypeVar("T")

TIMED = ("", "v1", "events")
"""What goes by itself: it lives its whole time from now."""


class Serving:
    """Goes on where a world is, in real time and over HTTPS."""

    def __init__(self, world: World, speed: float, plan: Plan) -> None:
        wall = datetime.now(UTC)
        # Certificates are checked by the wall's clock, and time never goes back.
        self.place = LiveWorld(world.seed, world.server.store.fork(), max(wall, world.now()), speed)
        self._folder = tempfile.TemporaryDirectory(prefix="steersman-")
        self._boot = Bootstrap.generate(lambda: datetime.now(UTC))
        self.url = self.place.run(self._open(plan))
        """Where clients reach it."""
        self.kubeconfig = Path(self._folder.name, "kubeconfig")
        """What they say who they are with."""
        write_private(self.kubeconfig, self._boot.kubeconfig(self.url))

    async def _open(self, plan: Plan) -> str:
        server = self.place.server
        server.renew(server.registry.find(*TIMED))
        authority = self._boot.authority.pair.cert
        self.authorizer = bootstrap_server(server, client_ca=authority, disabled_plugins=plan.missing)
        self._edge = await self._boot.serve(server, self.authorizer)
        return self._edge.url

    def call(self, do: Callable[[], T]) -> T:
        """Do something in the thread of the cluster."""

        async def done() -> T:
            return do()

        return self.place.run(done())

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
        """Listen no more, and leave nothing behind."""
        self.place.run(self._edge.close())
        self._folder.cleanup()
