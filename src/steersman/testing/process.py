"""Processes of a simulated cluster that can die: what they asked for and was not done yet, never is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias, cast

from steersman.api.clock import Clock
from steersman.api.errors import Unreachable
from steersman.client.api import Api
from steersman.intent.controller import Controller
from steersman.runtime.action_table import read_file
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.metrics import Metrics
from steersman.server.auth import users
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.local import LocalApi
from steersman.server.server import Server
from steersman.testing.history import Chronicle

ROOT = "system:kube-controller-manager"
"""Who a manager is where no controller has an account of its own."""

Through: TypeAlias = Callable[[Api], Api]
"""What stands between a manager and the server."""


class Place(Protocol):
    """Where processes live: a world, under virtual time or not."""

    server: Server

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None) -> Any: ...


class Wire(LocalApi):
    """A connection that can be cut."""

    def cut(self) -> None:
        """From now on nothing gets through, not even what is under way."""
        self.server = cast("Server", _Gone())


def acting(api: LocalApi, authorizer: RBACAuthorizer | None) -> Api:
    """A client with the rights its user has; without an authorizer, with all."""
    return api if authorizer is None else AuthorizedApi(api, authorizer)


def user_named(name: str, authorizer: RBACAuthorizer | None) -> users.User:
    """The user of a name, a ServiceAccount with its groups; without an authorizer, with all rights."""
    account = users.split_service_account(name)
    user = users.User(name) if account is None else users.service_account_user(*account, "")
    return users.authenticated(user if authorizer is not None else user.with_group(users.MASTERS))


class _Gone:
    def __getattr__(self, name: str) -> Any:
        raise Unreachable("this process has ended")


class Manager:
    """One life of a process that runs controllers."""

    def __init__(
        self,
        controllers: Sequence[Controller[Any]],
        place: Place,
        clock: Clock,
        chronicle: Chronicle,
        *,
        authorizer: RBACAuthorizer | None = None,
        account: str = "",
        through: Through = lambda api: api,
        files: Callable[[str], bytes] = read_file,
        name: str = "manager",
    ) -> None:
        """Starts at once, with empty caches.

        With an ``authorizer`` each controller has the rights of its own account in kube-system, or all have
        those of one ``account``, and none but these; without one they may do everything. ``files`` reads what flags name.
        """
        self.controllers = tuple(controllers)
        self.name = name
        self.alive = True
        self._wires: list[Wire] = []
        self._place = place
        self._through = through
        self._authorizer = authorizer
        self.account = account
        """The user that all controllers act as, where they do not each have their own."""
        for controller in self.controllers:
            if controller.watches:
                chronicle.resources[controller.name] = controller.watches[0].kind.resource
        self.fleet = ControllerGroup(
            self.controllers,
            self._api(account or ROOT),
            clock,
            api_of=lambda each: self._api(self._acts_as(each)),
            fence=self.fence,
            metrics=Metrics(enabled=False),  # nobody scrapes it
            trace=chronicle.trace,
            files=files,
        )
        self._task: asyncio.Task[None] = place.spawn(self._run(), name=name)

    def _api(self, user: str) -> Api:
        wire = Wire(self._place.server, user_named(user, self._authorizer), manager="kube-controller-manager")
        self._wires.append(wire)
        return self._through(acting(wire, self._authorizer))

    def _acts_as(self, controller: Controller[Any]) -> str:
        if self.account or controller.as_manager:
            return self.account or ROOT
        return users.service_account_username("kube-system", controller.service_account or controller.name)

    def fence(self) -> bool:
        """Whether it may write now."""
        return self.alive

    async def _work(self) -> None:
        await self.fleet.run()

    async def _run(self) -> None:
        try:
            await self._work()
        except BaseException:
            # Whatever the dying do is nobody's concern.
            if self.alive:
                raise

    def crash(self) -> None:
        """End at once, between any two instructions: nothing is finished, flushed or said any more."""
        self.alive = False
        for wire in self._wires:
            wire.cut()
        if not self._place.loop.is_closed():
            self._place.loop.call_soon_threadsafe(self._task.cancel)
