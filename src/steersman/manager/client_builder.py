"""Client builder: one client for each controller.

With ``--use-service-account-credentials`` each controller acts as its own ServiceAccount in kube-system, with tokens
from the TokenRequest API, so it has only the permissions of its bootstrap role. Without it, all clients act as the
user of the kubeconfig and differ in user agent and rate limit.
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
from steersman.client.auth import FetchedTokenAuth, NoCredentials, Now, Token, wall_clock
from steersman.client.http import HttpApi
from steersman.intent.controller import Controller

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
LIFETIME = 3600
"""Requested lifetime of a token, in seconds. A token is renewed when a fifth of it is left."""
PARALLEL_TOKEN_REQUESTS = 4
"""TokenRequests in flight at start. Each additional one would open a socket that is hardly used again."""


class ClientBuilder:
    """Builds the clients that controllers write with."""

    def __init__(self, root: HttpApi, *, use_service_accounts: bool, now: Now = wall_clock) -> None:
        """``root`` acts as the user of the kubeconfig; ``use_service_accounts``: one ServiceAccount per controller."""
        self._root = root
        self._use_service_accounts = use_service_accounts
        self._manager = root.with_user_agent("kube-controller-manager")
        """Requests tokens, and creates missing ServiceAccounts."""
        self._clients: list[HttpApi] = [self._manager]
        self._now = now
        self._tokens: dict[str, FetchedTokenAuth] = {}
        """Token sources by ServiceAccount; some controllers share one."""

    def client(self, controller: Controller[Any], fence: Callable[[], bool] | None = None) -> HttpApi:
        """Build the client of a controller. It writes only while ``fence`` returns True.

        `fetch_tokens` requests its token; otherwise its first request does.
        """
        account = controller.service_account or controller.name
        qps, burst = self._root.qps * controller.qps_factor, round(self._root.burst * controller.burst_factor)
        if self._use_service_accounts and not controller.as_manager:
            user = f"system:serviceaccount:{NAMESPACE}:{account}"
            tokens = self._tokens.get(account)
            if tokens is None:
                tokens = self._tokens[account] = FetchedTokenAuth(partial(self._token, account), self._now)
            client = self._root.acting_as(tokens, user, qps=qps, burst=burst, fence=fence)
        else:
            client = self._root.with_user_agent(account, qps=qps, burst=burst, fence=fence)
        self._clients.append(client)
        return client

    async def fetch_tokens(self) -> None:
        """Request all tokens now, so that no controller waits for its token with its first write."""
        limit = asyncio.Semaphore(PARALLEL_TOKEN_REQUESTS)

        async def fetch(tokens: FetchedTokenAuth) -> None:
            async with limit:
                try:
                    await tokens.credential()
                except NoCredentials as error:
                    # Not fatal: the controller requests the token again when it needs it.
                    log.warning("%s", error)

        await asyncio.gather(*map(fetch, self._tokens.values()))

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    async def _token(self, account: str) -> Token:
        """Request a token for a ServiceAccount, and create the ServiceAccount where it is missing."""
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
        log.log(V[4], "requesting a token for %s/%s", NAMESPACE, account)
        return await self._manager.subresource(SERVICEACCOUNTS, NAMESPACE, account, "token", body)
