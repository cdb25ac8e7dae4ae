"""What the settings name: files on disk, and what the manager was given in another way."""

from __future__ import annotations

import re
import ssl
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steersman.client.connection import ConfigError, Pem
from steersman.controllers import rootcacertpublisher, serviceaccounttoken
from steersman.controllers.certificates import signing
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import FileUnreadable
from steersman.intent.controller import Controller
from steersman.intent.settings import Settings
from steersman.runtime.action_table import read_file

OWN_CA = "(the CA of the kubeconfig)"
"""Stands for a path; no file is called so."""


class Files:
    """Reads by path. What is ``given`` is not looked for on disk."""

    def __init__(self, given: Mapping[str, bytes]) -> None:
        self._given = given

    def __call__(self, path: str) -> bytes:
        known = self._given.get(path)
        return read_file(path) if known is None else known


def settle(settings: Settings, ca: Pem) -> tuple[Settings, Files]:
    """The settings and the files they name. Where no root CA is named it is that of the kubeconfig."""
    if settings.flags.get("root-ca-file"):
        return settings, Files({})
    # differs: upstream publishes nothing where the kubeconfig names a file instead of holding the CA.
    path = ca.path or OWN_CA
    return Settings({**settings.flags, "root-ca-file": path}, settings.gates), Files({OWN_CA: ca.data})


def examine(settings: Settings, controllers: Iterable[Controller[Any]]) -> None:
    """Look into the files that controllers will read, so that a wrong one shows at once. Raises `ConfigError`.

    Quickly, for everything waits: the library that will use them takes longer to load than all that is done here.
    """
    names = [controller.name for controller in controllers]
    for look, *paths in _looks(settings, names):
        try:
            look(*paths, *map(read_file, paths))
        except FileUnreadable as error:
            raise ConfigError(str(error)) from None
        except ValueError as error:
            raise ConfigError(f"{', '.join(paths)}: {error}") from None


def _looks(settings: Settings, names: list[str]) -> Iterator[tuple[Any, ...]]:
    """What raises where files cannot be used, and those files."""
    key, ca = settings[serviceaccounttoken.KEY], settings[ROOT_CA_FILE]
    if key and serviceaccounttoken.controller.name in names:
        yield _key, key
    if ca and (serviceaccounttoken.controller.name in names or rootcacertpublisher.controller.name in names):
        yield _bundle, ca
    if signing.controller.name in names:
        for pair in dict.fromkeys(signing.key_pairs(settings).values()):
            yield _authority, pair.cert, pair.key


_PRIVATE = re.compile(rb"-----BEGIN (\w+ )?PRIVATE KEY-----\s+([\w+/=\s]+)-----END (\w+ )?PRIVATE KEY-----")


def _key(path: str, pem: bytes) -> None:
    found = _PRIVATE.search(pem)
    try:
        key = b64decode(found[2]) if found is not None else b""
    except ValueError:
        key = b""
    if not key.startswith(b"0"):  # the byte every such key begins with
        raise ValueError("holds no private key in PEM")


def _bundle(path: str, pem: bytes) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except ssl.SSLError:
        raise ValueError("is not a bundle of CA certificates in PEM") from None


def _authority(cert: str, key: str, cert_pem: bytes, key_pem: bytes) -> None:
    _bundle(cert, cert_pem)
    _key(key, key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # how strong it is, is not asked here
    try:
        context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        foreign = error.reason == "KEY_VALUES_MISMATCH"
        told = "the CA key does not belong to the CA certificate" if foreign else "the CA key cannot be read"
        raise ValueError(told) from None
