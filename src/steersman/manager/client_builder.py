"""Identities: one client for each controller.

With ``--use-service-account-credentials`` each acts as a ServiceAccount of its own in kube-system, by
tokens the API server gives out for it, so that each has just the rights of its bootstrap role.
Otherwise all are the kubeconfig's user and differ in their user agent and rate limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from steersman.api.errors import AlreadyExists, NotFound
from steersman.api.kinds import SERVICEACCOUNTS, ObjectMeta, ServiceAccount
from steersman.api.verbosity import V
from steersman.client.auth import Fetched, NoCredentials, Now, Token, wall
from steersman.client.http import HttpApi
from steersman.intent.controller import Controller

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
LIFETIME = 3600
"""Seconds a token is asked to live; it is renewed when a fifth of that is left."""
AT_ONCE = 4
"""Tokens that are asked for together at the start. Each more would open a socket that is hardly used again."""


class Accounts:
    """Makes the clients that controllers write with."""

    def __init__(self, root: HttpApi, *, own: bool, now: Now = wall) -> None:
        """``root`` is the kubeconfig's user; ``own`` gives each controller its own ServiceAccount."""
        self._root = root
        self._own = own
        self._manager = root.with_agent("kube-controller-manager")
        """Asks for tokens, and makes accounts."""
        self._clients: list[HttpApi] = [self._manager]
        self._now = now
        self._tokens: dict[str, Fetched] = {}
        """By account: some controllers share one."""

    def client(self, controller: Controller[Any], permit: Callable[[], bool] | None = None) -> HttpApi:
        """The client of a controller, which writes while it is permitted to.

        Its token is asked for by `warm`, or else with its first request.
        """
        account = controller.service_account or controller.name
        qps, burst = self._root.qps * controller.qps_factor, round(self._root.burst * controller.burst_factor)
        if self._own and not controller.as_manager:
            who = f"system:serviceaccount:{NAMESPACE}:{account}"
            tokens = self._tokens.get(account)
            if tokens is None:
                tokens = self._tokens[account] = Fetched(partial(self._token, account), self._now)
            client = self._root.acting_as(tokens, who, qps=qps, burst=burst, permit=permit)
        else:
            client = self._root.with_agent(account, qps=qps, burst=burst, permit=permit)
        self._clients.append(client)
        return client

    async def warm(self) -> None:
        """Ask for all tokens now, so that no controller's first write waits for its own."""
        few = asyncio.Semaphore(AT_ONCE)

        async def one(tokens: Fetched) -> None:
            async with few:
                try:
                    await tokens.credential()
                except NoCredentials as error:
                    # Not the end: whoever needs it asks again.
                    log.warning("%s", error)

        await asyncio.gather(*map(one, self._tokens.values()))

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    async def _token(self, account: str) -> Token:
        """A fresh token of an account, which is made when it is missing."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME},
        }
        try:
            answer = await self._request(account, request)
        except NotFound:
            body = ServiceAccount(metadata=ObjectMeta(name=account, namespace=NAMESPACE))
            try:
                await self._manager.create(SERVICEACCOUNTS, NAMESPACE, body)
            except AlreadyExists:
                pass
            answer = await self._request(account, request)
        status = answer["status"]
        return Token(status["token"], datetime.fromisoformat(status["expirationTimestamp"]))

    async def _request(self, account: str, body: dict[str, Any]) -> dict[str, Any]:
        log.log(V[4], "asking for a token of %s/%s", NAMESPACE, account)
        return await self._manager.subresource(SERVICEACCOUNTS, NAMESPACE, account, "token", body)
