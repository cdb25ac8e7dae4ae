"""CA bundles that client certificates are verified with: from files, or as the API server publishes them.

kube-apiserver publishes its client CAs in the ConfigMap ``kube-system/extension-apiserver-authentication``. The ConfigMap is
watched, since CAs are rotated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steersman.api.clock import Clock
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.config import CONFIGMAPS, ConfigMap
from steersman.client.api import Api, EventType
from steersman.client.tls import file_versions
from steersman.manager.flags import UsageError
from steersman.runtime.backoff import Backoff
from steersman.server.auth.cert_verify import authorities

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
WATCH_TIMEOUT, WATCH_GRACE = 600, 30
"""Seconds that a watch lasts, and seconds to wait for the server to end it."""


class RequestHeaderNames(msgspec.Struct, frozen=True):
    """Names of the request headers in which a front proxy passes the user."""

    user: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)
    """Prefixes of header names."""


class RequestHeaderConfig(msgspec.Struct, frozen=True):
    """The front proxies to trust, and their request headers."""

    roots: tuple[Certificate, ...]
    names: tuple[str, ...] = ()
    """The common names that are allowed; empty allows all."""
    headers: RequestHeaderNames = RequestHeaderNames()


class CaBundle:
    """A CA bundle in a file, reloaded when the file changes. An invalid file is ignored."""

    def __init__(self, path: str, flag: str) -> None:
        """Raises `UsageError` where the file holds no certificates."""
        self._path = path
        self._flag = flag
        self._stamp = file_versions((path,))
        self._roots = self._read()

    def roots(self) -> tuple[Certificate, ...]:
        """The current CAs."""
        now = file_versions((self._path,))
        if now != self._stamp:
            self._stamp = now
            try:
                self._roots = self._read()
                log.info("reloaded the CA bundle %s", self._path)
            except UsageError as error:
                log.error("the CA bundle is not reloaded: %s", error)
        return self._roots

    def _read(self) -> tuple[Certificate, ...]:
        try:
            return authorities(Path(self._path).read_bytes())
        except OSError as error:
            why = (error.strerror or str(error)).lower()
        except ValueError:
            why = "no PEM certificate found"
        raise UsageError(f"--{self._flag}={self._path}: {why}")


class ClusterAuthentication:
    """The client CAs and front proxies that the API server of the cluster trusts."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._backoff = Backoff(clock)
        self._clients: tuple[Certificate, ...] = ()
        self._proxies: RequestHeaderConfig | None = None

    def clients(self) -> tuple[Certificate, ...]:
        """The CAs of clients; empty until they are known."""
        return self._clients

    def proxies(self) -> RequestHeaderConfig | None:
        """The front proxies to trust; None where there are none."""
        return self._proxies

    async def load(self) -> None:
        """Read the ConfigMap once. A missing ConfigMap is no error. Raises `ApiError`."""
        try:
            self._update(await self._api.get(CONFIGMAPS, NAMESPACE, NAME))
        except NotFound:
            log.info("configmap %s/%s not found", NAMESPACE, NAME)

    async def run(self) -> None:
        """Watch the ConfigMap until cancelled."""
        while True:
            try:
                # The server ends the watch in time, unless the connection is dead.
                async with asyncio.timeout(WATCH_TIMEOUT + WATCH_GRACE):
                    await self._watch()
            except (ApiError, TimeoutError) as error:
                log.info("watch of configmap %s/%s failed: %s", NAMESPACE, NAME, error)
            await asyncio.sleep(self._backoff.next())

    async def _watch(self) -> None:
        """One watch, which begins with the current ConfigMap."""
        fields = f"metadata.name={NAME}"
        async for event in self._api.watch(
            CONFIGMAPS, NAMESPACE, field_selector=fields, timeout_seconds=WATCH_TIMEOUT
        ):
            self._backoff.reset()
            if event.type is not EventType.DELETED and isinstance(event.obj, ConfigMap):
                self._update(event.obj)

    def _update(self, configmap: ConfigMap) -> None:
        """Take over the ConfigMap. As upstream, an invalid one is ignored."""
        data = configmap.data
        try:
            if data.get("client-ca-file"):
                self._clients = authorities(data["client-ca-file"].encode())
            if data.get("requestheader-client-ca-file"):
                self._proxies = _proxies(data)
        except ValueError as error:
            log.error("configmap %s/%s is invalid: %s", NAMESPACE, NAME, error)


def _proxies(data: Mapping[str, str]) -> RequestHeaderConfig:
    def values(name: str) -> tuple[str, ...]:
        return msgspec.json.decode(data.get(f"requestheader-{name}") or "[]", type=tuple[str, ...])

    headers = RequestHeaderNames(
        values("username-headers"),
        values("uid-headers"),
        values("group-headers"),
        values("extra-headers-prefix"),
    )
    roots = authorities(data["requestheader-client-ca-file"].encode())
    return RequestHeaderConfig(roots, values("allowed-names"), headers)
