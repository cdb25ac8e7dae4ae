"""Credentials from a command (*exec plugins*, ``client.authentication.k8s.io``)."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from steersman.client.connection import ConfigError, Connection, Plugin
from steersman.client.tls import gather

PATIENCE = 60.0
"""Seconds a plugin that talks to nobody may take. differs: upstream waits for ever."""
NOT_FOUND = "plugin_not_found_error"


class PluginError(Exception):
    """A plugin that gave no credentials. The message names it and says why, never what it printed."""

    def __init__(self, message: str, code: int = 1, status: str = "client_internal_error") -> None:
        """The code it ended with, and in which of upstream's ways it failed."""
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a plugin printed."""

    token: str = field(default="", repr=False)
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None


class _Status(msgspec.Struct):
    token: str | None = None
    clientCertificateData: str | None = None
    clientKeyData: str | None = None
    expirationTimestamp: datetime | None = None


class _ExecCredential(msgspec.Struct):
    apiVersion: str = ""
    kind: str = ""
    status: _Status | None = None


async def run(connection: Connection) -> Credentials:
    """Run the connection's plugin once. Its standard error is ours: it may have to talk to a person."""
    plugin = connection.user.plugin
    assert plugin is not None
    name = f'exec plugin "{plugin.command}"'
    interactive = _interactive(plugin, name)
    environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": _info(connection, interactive)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            env=environment,
        )
    except (FileNotFoundError, NotADirectoryError):
        hint = f": {_printable(plugin.install_hint)}" if plugin.install_hint else "; install it"
        raise PluginError(f"{name} is not there{hint}", status=NOT_FOUND) from None
    except OSError as error:
        said = (error.strerror or "failed").lower()
        raise PluginError(f"{name} cannot be run: {said}", status=NOT_FOUND) from None
    try:
        async with asyncio.timeout(None if interactive else PATIENCE):
            output, _ = await process.communicate()
    except TimeoutError:
        raise PluginError(f"{name} did not answer within {PATIENCE:.0f} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        code = process.returncode
        raise PluginError(f"{name} failed with exit code {code}", code, "plugin_execution_error")
    return _read(output, plugin, name)


def _interactive(plugin: Plugin, name: str) -> bool:
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive == "Always" and not terminal:
        raise PluginError(f"{name} needs standard input, which is not a terminal")
    return terminal and plugin.interactive != "Never"


def _info(connection: Connection, interactive: bool) -> str:
    """What the plugin is told, in ``KUBERNETES_EXEC_INFO``."""
    plugin = connection.user.plugin
    assert plugin is not None
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        tls = connection.tls
        try:
            ca = gather(tls).ca
        except ConfigError as error:
            raise PluginError(f'exec plugin "{plugin.command}": {error.message}') from None
        cluster = {
            "server": connection.server,
            "tls-server-name": tls.server_name,
            "insecure-skip-tls-verify": tls.insecure,
            "certificate-authority-data": base64.b64encode(ca).decode(),
            "proxy-url": connection.proxy,
            "disable-compression": not connection.compression,
            "config": msgspec.json.decode(plugin.config) if plugin.config else None,
        }
        spec["cluster"] = {key: value for key, value in cluster.items() if value or key == "config"}
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def _read(output: bytes, plugin: Plugin, name: str) -> Credentials:
    try:
        printed = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise PluginError(f"{name} printed something else than an ExecCredential") from None
    if printed.kind != "ExecCredential" or printed.apiVersion != plugin.api_version:
        raise PluginError(
            f"{name} is configured for {plugin.api_version} but printed "
            f"{printed.apiVersion or 'no apiVersion'} {printed.kind}"
        )
    status = printed.status or _Status()
    token, cert, key = status.token or "", status.clientCertificateData or "", status.clientKeyData or ""
    if not (token or cert or key):
        raise PluginError(f"{name} printed neither a token nor a certificate")
    if bool(cert) != bool(key):
        raise PluginError(f"{name} printed only one of certificate and key")
    expires = status.expirationTimestamp
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    return Credentials(token, cert.encode(), key.encode(), expires)


def _printable(text: str) -> str:
    """Without escape sequences, which could leave a terminal in a strange state."""
    return "".join(c if c.isprintable() or c.isspace() else f"U+{ord(c):04X}" for c in text)
