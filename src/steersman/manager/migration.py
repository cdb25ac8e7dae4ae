"""Leader migration: moving controllers from one manager to another without both running them.

The controllers named in a LeaderMigrationConfiguration run under a lease of their own, which both managers use. Of those,
a manager runs the ones assigned to it. All other controllers stay under the manager's main lease.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from steersman.client.config import ConfigError
from steersman.intent.controller import Controller

COMPONENT = "kube-controller-manager"
ANY = "*"
"""Every component that takes part."""
TOKENS = "serviceaccount-token-controller"
"""Issues the credentials of the other controllers, so it always runs under the main lease."""

GROUP = "controllermanager.config.k8s.io"
KIND = "LeaderMigrationConfiguration"


class Leader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The component a controller is assigned to."""

    name: str = ""
    component: str = ""


class Migration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A LeaderMigrationConfiguration of version v1."""

    apiVersion: str = f"{GROUP}/v1"
    kind: str = KIND
    leaderName: str = ""
    controllerLeaders: tuple[Leader, ...] = ()

    def split(self, controllers: tuple[Controller[Any], ...]) -> Shares:
        """Divide controllers into those under the main lease and those under the migration lease."""
        ours = {leader.name: leader.component in (COMPONENT, ANY) for leader in self.controllerLeaders}
        ours.pop(TOKENS, None)
        return Shares(
            main=tuple(one for one in controllers if one.name not in ours),
            migrated=tuple(one for one in controllers if ours.get(one.name, False)),
        )


class OlderMigration(Migration, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A LeaderMigrationConfiguration of version v1alpha1 or v1beta1, which also names the resource lock."""

    resourceLock: str = ""


class Shares(msgspec.Struct, frozen=True):
    """Controllers by the lease they run under. A controller in neither is assigned to another component."""

    main: tuple[Controller[Any], ...]
    migrated: tuple[Controller[Any], ...]


DEFAULT: Final = Migration(
    leaderName="cloud-provider-extraction-migration",
    controllerLeaders=tuple(
        Leader(name, ANY)
        for name in ("route-controller", "service-controller", "cloud-node-lifecycle-controller")
    ),
)
"""Upstream's default. Two of its names are controllers of cloud-controller-manager only."""

_VERSIONS: dict[str, type[Migration]] = {
    f"{GROUP}/v1": Migration,
    f"{GROUP}/v1beta1": OlderMigration,
    f"{GROUP}/v1alpha1": OlderMigration,
}


def configuration(enabled: bool, path: str) -> Migration | None:
    """The configuration that the flags select: none, the default, or a file. Raises `ConfigError`."""
    if not enabled:
        return None
    return read(path) if path else DEFAULT


def read(path: str) -> Migration:
    """Read a configuration file. Raises `ConfigError`, whose message names the file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot read the leader migration configuration: {error.strerror}"
        ) from None
    try:
        return _parse(content)
    except (ValueError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{path}: not a leader migration configuration: {problem}") from None


def _parse(content: bytes) -> Migration:
    document = yaml.load(content, Loader=_Strict)
    if not isinstance(document, dict):
        raise ValueError("its content must be a mapping")
    version, kind = document.get("apiVersion"), document.get("kind")
    if kind != KIND or version not in _VERSIONS:
        raise ValueError(
            f"it must be a {KIND} of {', '.join(_VERSIONS)}, but is {kind or 'nothing'} of {version}"
        )
    migration = msgspec.convert(document, _VERSIONS[version])
    for problem in _problems(migration):
        raise ValueError(problem)
    return migration


def _problems(migration: Migration) -> Iterable[str]:
    if not migration.leaderName:
        yield "leaderName must be set"
    if isinstance(migration, OlderMigration) and migration.resourceLock != "leases":
        yield f"resourceLock must be leases, but is {migration.resourceLock!r}"
    for number, leader in enumerate(migration.controllerLeaders):
        if not leader.name:
            yield f"controllerLeaders[{number}].name must be set"
        if not leader.component:
            yield f"controllerLeaders[{number}].component must be set"


class _Strict(yaml.SafeLoader):
    """Rejects a mapping with a duplicate key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                raise ValueError(f"duplicate key {key}")
        return super().construct_mapping(node, deep)
