"""Processes of a simulated cluster that can crash: their unfinished requests are never carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias, cast

from steersman.api.clock import Clock
from steersman.api.cloud import CloudProvider
from steersman.api.errors import Unreachable
from steersman.client.api import Api
from steersman.cloud.local import LocalProvider
from steersman.intent.controller import Controller
from steersman.runtime.action_table import read_file
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.metrics import Metrics
from steersman.server.auth import users
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.testing.history import History

ROOT = "system:kube-controller-manager"
"""The user of a manager whose controllers have no accounts of their own."""

Through: TypeAlias = Callable[[Api], Api]
"""Wraps the client of a manager."""


class Runtime(Protocol):
    """Where processes run: a world, under virtual or real time."""

    server: Server

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None) -> Any: ...


class DisconnectableApi(LocalApi):
    """A client that can be disconnected."""

    def disconnect(self) -> None:
        """Disconnect: no request gets through any more, not even those in flight."""
        self.server = cast("Server", _Gone())


def acting(api: LocalApi, authorizer: RBACAuthorizer | None) -> Api:
    """A client with the permissions of its user; without an authorizer, with all."""
    return api if authorizer is None else AuthorizedApi(api, authorizer)


def user_named(name: str, authorizer: RBACAuthorizer | None) -> users.User:
    """A user by name, with its groups; without an authorizer, in system:masters."""
    account = users.split_service_account(name)
    user = users.User(name) if account is None else users.service_account_user(*account, "")
    return users.authenticated(user if authorizer is not None else user.with_group(users.MASTERS))


class _Gone:
    def __getattr__(self, name: str) -> Any:
        raise Unreachable("this process has ended")


class Manager:
    """A process that runs controllers, until it crashes."""

    def __init__(
        self,
        controllers: Sequence[Controller[Any]],
        runtime: Runtime,
        clock: Clock,
        history: History,
        *,
        authorizer: RBACAuthorizer | None = None,
        account: str = "",
        through: Through = lambda api: api,
        files: Callable[[str], bytes] = read_file,
        name: str = "manager",
        cloud: CloudProvider | None = None,
    ) -> None:
        """Starts at once, with empty caches.

        With an ``authorizer`` each controller has the permissions of its own ServiceAccount in kube-system, or all have those of
        one ``account``; without one they have all permissions. ``files`` reads the files that flags name. Without a
        ``cloud`` provider, load balancers get addresses from the default pools of the provider ``local``.
        """
        self.controllers = tuple(controllers)
        self.name = name
        self.alive = True
        self._connections: list[DisconnectableApi] = []
        self._runtime = runtime
        self._through = through
        self._authorizer = authorizer
        self.account = account
        """The user of all controllers; empty: each has its own."""
        for controller in self.controllers:
            if controller.watches:
                history.resources[controller.name] = controller.watches[0].kind.resource
        self.fleet = ControllerGroup(
            self.controllers,
            self._api(account or ROOT),
            clock,
            api_of=lambda each: self._api(self._acts_as(each)),
            fence=self.fence,
            metrics=Metrics(enabled=False),  # never scraped
            trace=history.trace,
            files=files,
            cloud=cloud or LocalProvider(routes=False, instances=False),
            lazy=True,
        )
        self._task: asyncio.Task[None] = runtime.spawn(self._run(), name=name)

    def _api(self, user: str) -> Api:
        connection = DisconnectableApi(
            self._runtime.server, user_named(user, self._authorizer), manager="kube-controller-manager"
        )
        self._connections.append(connection)
        return self._through(acting(connection, self._authorizer))

    def _acts_as(self, controller: Controller[Any]) -> str:
        if self.account or controller.as_manager:
            return self.account or ROOT
        return users.service_account_username("kube-system", controller.service_account or controller.name)

    def fence(self) -> bool:
        """Whether it may write."""
        return self.alive

    async def _work(self) -> None:
        await self.fleet.run()

    async def _run(self) -> None:
        try:
            await self._work()
        except BaseException:
            # Errors of a crashed process are not reported.
            if self.alive:
                raise

    def crash(self) -> None:
        """Stop at once, without cleanup: no further request is carried out."""
        self.alive = False
        for connection in self._connections:
            connection.disconnect()
        if not self._runtime.loop.is_closed():
            self._runtime.loop.call_soon_threadsafe(self._task.cancel)
