"""What the settings name: files on disk, and what the manager was given in another way."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from steersman.client.connection import ConfigError, Pem
from steersman.controllers import rootca, tokens
from steersman.controllers.certificates import signing
from steersman.controllers.shared.flags import ROOT_CA_FILE
from steersman.intent.actions import Unreadable
from steersman.intent.controller import Controller
from steersman.intent.settings import Settings
from steersman.runtime.shell import read_file

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
    """Look into the files that controllers will read, so that a wrong one shows at once. Raises `ConfigError`."""
    names = [controller.name for controller in controllers]
    for paths, look in _looks(settings, names):
        try:
            look(*map(read_file, paths))
        except Unreadable as error:
            raise ConfigError(str(error)) from None
        except Exception as error:
            raise ConfigError(f"{', '.join(paths)}: {error}") from None


def _looks(settings: Settings, names: list[str]) -> Iterator[tuple[tuple[str, ...], Callable[..., object]]]:
    """Files that belong together, and what raises where they cannot be used."""
    key, ca = settings[tokens.KEY], settings[ROOT_CA_FILE]
    if key and tokens.controller.name in names:
        yield (key,), _key
    if ca and (tokens.controller.name in names or rootca.controller.name in names):
        yield (ca,), _bundle
    if signing.controller.name in names:
        for pair in dict.fromkeys(signing.pairs(settings).values()):
            yield (pair.cert, pair.key), _authority


def _key(pem: bytes) -> object:
    from steersman.api.keys import Keys

    return Keys.load(pem).signer


def _bundle(pem: bytes) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except ssl.SSLError:
        raise ValueError("is not a bundle of CA certificates in PEM") from None


def _authority(cert: bytes, key: bytes) -> object:
    from steersman.controllers.certificates import authority

    return authority.load(cert, key)
