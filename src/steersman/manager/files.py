"""What the settings name: files on disk, and what the manager was given in another way."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.client.connection import Pem
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
