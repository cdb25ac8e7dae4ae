"""Runs exec plugins: commands that print credentials (``client.authentication.k8s.io``)."""

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

from steersman.client.config import ClientConfig, ConfigError, ExecPlugin
from steersman.client.tls import load_material

TIMEOUT = 60.0
"""Seconds a plugin may take that is not interactive. differs: upstream has no timeout."""
NOT_FOUND = "plugin_not_found_error"


class PluginError(Exception):
    """A plugin failed to provide credentials. The message never contains its output."""

    def __init__(self, message: str, code: int = 1, status: str = "client_internal_error") -> None:
        """``code`` is the exit code, ``status`` upstream's call status for metrics."""
        super().__init__(message)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credentials that a plugin printed."""

    token: str = field(default="", repr=False)
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None


class _Status(msgspec.Struct):
    token: str | None = None
    clientCertificateData: str | None = None
    clientKeyData: str | None = None
    expirationTimestamp: datetime | None = None


class _ExecCredentialDocument(msgspec.Struct):
    apiVersion: str = ""
    kind: str = ""
    status: _Status | None = None


async def run_plugin(config: ClientConfig) -> ExecCredential:
    """Run the plugin of a config once. It inherits standard error, to be able to prompt a user."""
    plugin = config.user.plugin
    assert plugin is not None
    name = f'exec plugin "{plugin.command}"'
    interactive = _interactive(plugin, name)
    environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": _info(config, interactive)}
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
        raise PluginError(f"{name} is not installed{hint}", status=NOT_FOUND) from None
    except OSError as error:
        reason = (error.strerror or "failed").lower()
        raise PluginError(f"{name} cannot be run: {reason}", status=NOT_FOUND) from None
    try:
        async with asyncio.timeout(None if interactive else TIMEOUT):
            output, _ = await process.communicate()
    except TimeoutError:
        raise PluginError(f"{name} did not answer within {TIMEOUT:.0f} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        code = process.returncode
        raise PluginError(f"{name} failed with exit code {code}", code, "plugin_execution_error")
    return _read(output, plugin, name)


def _interactive(plugin: ExecPlugin, name: str) -> bool:
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive == "Always" and not terminal:
        raise PluginError(f"{name} requires a terminal as standard input")
    return terminal and plugin.interactive != "Never"


def _info(config: ClientConfig, interactive: bool) -> str:
    """Return the plugin's input, for the variable ``KUBERNETES_EXEC_INFO``."""
    plugin = config.user.plugin
    assert plugin is not None
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        tls = config.tls
        try:
            ca = load_material(tls).ca
        except ConfigError as error:
            raise PluginError(f'exec plugin "{plugin.command}": {error.message}') from None
        cluster = {
            "server": config.server,
            "tls-server-name": tls.server_name,
            "insecure-skip-tls-verify": tls.insecure,
            "certificate-authority-data": base64.b64encode(ca).decode(),
            "proxy-url": config.proxy,
            "disable-compression": not config.compression,
            "config": msgspec.json.decode(plugin.config) if plugin.config else None,
        }
        spec["cluster"] = {key: value for key, value in cluster.items() if value or key == "config"}
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def _read(output: bytes, plugin: ExecPlugin, name: str) -> ExecCredential:
    try:
        printed = msgspec.json.decode(output, type=_ExecCredentialDocument)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise PluginError(f"{name} did not print an ExecCredential") from None
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
        raise PluginError(f"{name} printed a certificate without a key, or a key without a certificate")
    expires = status.expirationTimestamp
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    return ExecCredential(token, cert.encode(), key.encode(), expires)


def _printable(text: str) -> str:
    """Escape control characters, which could corrupt a terminal."""
    return "".join(c if c.isprintable() or c.isspace() else f"U+{ord(c):04X}" for c in text)
