"""The authorities clients are recognised by: from files, or from what the API server publishes of its own.

kube-apiserver writes into ``kube-system/extension-apiserver-authentication`` whom it trusts, for those who serve
beside it. It is watched, since authorities are renewed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.config import CONFIGMAPS, ConfigMap
from steersman.client.api import Api, EventType
from steersman.client.tls import stamp
from steersman.manager.flags import UsageError
from steersman.manager.serving.cert_verify import authorities
from steersman.runtime.backoff import Backoff
from steersman.runtime.clock import Clock

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

log = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
WATCH, LATE = 600, 30
"""Seconds that a watch lasts, and after which it is given up if the server has not ended it."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Where a front proxy writes whom it speaks for."""

    user: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)
    """Prefixes of further headers."""


@dataclass(frozen=True, slots=True)
class Proxies:
    """Whom to believe on behalf of whom they speak."""

    roots: tuple[Certificate, ...]
    names: tuple[str, ...] = ()
    """The common names that are believed; all where none are given."""
    headers: Headers = Headers()


class Bundle:
    """The authorities in a file, read again when it changes; broken, it changes nothing."""

    def __init__(self, path: str, flag: str) -> None:
        """Raises `UsageError` where there are none."""
        self._path = path
        self._flag = flag
        self._stamp = stamp((path,))
        self._roots = self._read()

    def roots(self) -> tuple[Certificate, ...]:
        """Those there are now."""
        now = stamp((self._path,))
        if now != self._stamp:
            self._stamp = now
            try:
                self._roots = self._read()
                log.info("the authorities in %s are read again", self._path)
            except UsageError as error:
                log.error("the authorities stay as they were: %s", error)
        return self._roots

    def _read(self) -> tuple[Certificate, ...]:
        try:
            return authorities(Path(self._path).read_bytes())
        except OSError as error:
            why = (error.strerror or str(error)).lower()
        except ValueError:
            why = "holds no PEM certificate"
        raise UsageError(f"--{self._flag}={self._path}: {why}")


class Published:
    """What the cluster's API server trusts."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._backoff = Backoff(clock)
        self._clients: tuple[Certificate, ...] = ()
        self._proxies: Proxies | None = None

    def clients(self) -> tuple[Certificate, ...]:
        """The authorities of clients; none until they are known."""
        return self._clients

    def proxies(self) -> Proxies | None:
        """The front proxies to believe; None where there are none."""
        return self._proxies

    async def look(self) -> None:
        """Read it once. Raises `ApiError`; what is not there is no error."""
        try:
            self._take(await self._api.get(CONFIGMAPS, NAMESPACE, NAME))
        except NotFound:
            log.info("there is no configmap %s/%s", NAMESPACE, NAME)

    async def follow(self) -> None:
        """Keep to what is published, until cancelled."""
        while True:
            try:
                # The server ends it in time, unless it is gone without a word.
                async with asyncio.timeout(WATCH + LATE):
                    await self._watch()
            except (ApiError, TimeoutError) as error:
                log.info("configmap %s/%s cannot be followed: %s", NAMESPACE, NAME, error)
            await asyncio.sleep(self._backoff.next())

    async def _watch(self) -> None:
        """Each watch begins with what there is."""
        fields = f"metadata.name={NAME}"
        async for event in self._api.watch(
            CONFIGMAPS, NAMESPACE, field_selector=fields, timeout_seconds=WATCH
        ):
            self._backoff.reset()
            if event.type is not EventType.DELETED and isinstance(event.obj, ConfigMap):
                self._take(event.obj)

    def _take(self, published: ConfigMap) -> None:
        """As upstream, what cannot be read changes nothing."""
        data = published.data
        try:
            if data.get("client-ca-file"):
                self._clients = authorities(data["client-ca-file"].encode())
            if data.get("requestheader-client-ca-file"):
                self._proxies = _proxies(data)
        except ValueError as error:
            log.error("configmap %s/%s cannot be read: %s", NAMESPACE, NAME, error)


def _proxies(data: Mapping[str, str]) -> Proxies:
    def told(name: str) -> tuple[str, ...]:
        return msgspec.json.decode(data.get(f"requestheader-{name}") or "[]", type=tuple[str, ...])

    headers = Headers(
        told("username-headers"), told("uid-headers"), told("group-headers"), told("extra-headers-prefix")
    )
    roots = authorities(data["requestheader-client-ca-file"].encode())
    return Proxies(roots, told("allowed-names"), headers)
