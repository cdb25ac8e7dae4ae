"""Files that flags name: validated at start, then read by controllers."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steersman.api.pem import PRIVATE_KEYS, blocks
from steersman.client.config import ConfigError, Pem
from steersman.controllers import rootcacertpublisher, serviceaccounttoken
from steersman.controllers.certificates import signer
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import FileUnreadable
from steersman.intent.controller import Controller
from steersman.intent.settings import Settings
from steersman.runtime.action_table import read_file

OWN_CA = "(the CA of the kubeconfig)"
"""Stands for a path; no file has this name."""


class FileReader:
    """Reads files by path. A path in ``contents`` is not read from disk."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    def __call__(self, path: str) -> bytes:
        known = self._contents.get(path)
        return read_file(path) if known is None else known


def with_root_ca(settings: Settings, ca: Pem) -> tuple[Settings, FileReader]:
    """The settings, and a reader of the files they name. ``--root-ca-file`` defaults to the CA of the kubeconfig."""
    if settings.flags.get("root-ca-file"):
        return settings, FileReader({})
    # differs: upstream publishes no root CA where the kubeconfig names a file instead of embedding the CA.
    path = ca.path or OWN_CA
    return Settings({**settings.flags, "root-ca-file": path}, settings.gates), FileReader({OWN_CA: ca.data})


def validate_files(settings: Settings, controllers: Iterable[Controller[Any]]) -> None:
    """Check the files that controllers will read, so that an invalid one fails at start. Raises `ConfigError`.

    The checks use the standard library only: importing cryptography would take longer than all of them.
    """
    names = [controller.name for controller in controllers]
    for check, *paths in _checks(settings, names):
        try:
            check(*paths, *map(read_file, paths))
        except FileUnreadable as error:
            raise ConfigError(str(error)) from None
        except ValueError as error:
            raise ConfigError(f"{', '.join(paths)}: {error}") from None


def _checks(settings: Settings, names: list[str]) -> Iterator[tuple[Any, ...]]:
    """Check functions, which raise ValueError, each with the paths it checks."""
    key, ca = settings[serviceaccounttoken.PRIVATE_KEY_FILE], settings[ROOT_CA_FILE]
    if key and serviceaccounttoken.controller.name in names:
        yield _key, key
    if ca and (serviceaccounttoken.controller.name in names or rootcacertpublisher.controller.name in names):
        yield _bundle, ca
    if signer.controller.name in names:
        for pair in dict.fromkeys(signer.key_pairs(settings).values()):
            yield _authority, pair.cert, pair.key


def _key(path: str, pem: bytes) -> None:
    keys = (block.content for block in blocks(pem) if block.type in PRIVATE_KEYS)
    # Every key begins with the DER tag SEQUENCE, which is 0 in ASCII.
    if not any(key.startswith(b"0") for key in keys):
        raise ValueError("no private key in PEM format")


def _bundle(path: str, pem: bytes) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except ssl.SSLError:
        raise ValueError("not a bundle of CA certificates in PEM format") from None


def _authority(cert: str, key: str, cert_pem: bytes, key_pem: bytes) -> None:
    _bundle(cert, cert_pem)
    _key(key, key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # the key's strength is not checked here
    try:
        context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        mismatch = error.reason == "KEY_VALUES_MISMATCH"
        raise ValueError(
            "the CA key does not match the CA certificate" if mismatch else "the CA key cannot be read"
        ) from None
