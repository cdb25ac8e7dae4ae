"""Cloud providers by name: those that are built in, and those that installed distributions register as entry points.

A distribution registers a factory in the group ``steersman.cloud_providers``::

    [project.entry-points."steersman.cloud_providers"]
    acme = "acme_cloud:provider"

The factory gets the content of the file that ``--cloud-config`` names, or None without one, and returns a
`CloudProvider`. It raises ValueError with one line that says what is wrong with the configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from steersman.api.cloud import CloudProvider
from steersman.api.go_quote import quote
from steersman.cloud.local import from_config

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "steersman.cloud_providers"
EXTERNAL = "external"
"""The name with which all cloud controllers are left to cloud-controller-manager."""
Factory: TypeAlias = Callable[[bytes | None], CloudProvider]
BUILT_IN: dict[str, Factory] = {"local": from_config}


class UnknownProvider(LookupError):
    """No provider has this name. The message lists those that are installed."""


class InvalidProvider(Exception):
    """A provider that cannot be loaded or configured. The message is one line."""


def installed() -> tuple[str, ...]:
    """The names of the installed providers, sorted."""
    return tuple(sorted({*BUILT_IN, *(point.name for point in _points())}))


def is_installed(name: str) -> bool:
    return name in BUILT_IN or any(point.name == name for point in _points())


def unknown_provider(name: str) -> str:
    """The error message for a name that no provider has: upstream's, and the names that there are."""
    return (
        f"cloud provider {quote(name)} was specified, but built-in cloud providers are disabled. "
        "Please set --cloud-provider=external and migrate to an external cloud provider "
        f"(--cloud-provider accepts the installed ones: {', '.join(installed())})"
    )


def make_provider(name: str, config: bytes | None = None) -> CloudProvider | None:
    """Make the provider of this name; None for no name and for ``external``.

    Raises `UnknownProvider`, or `InvalidProvider` where it cannot be loaded or refuses its configuration.
    """
    if name in ("", EXTERNAL):
        return None
    factory = BUILT_IN.get(name) or _load(name)
    try:
        provider = factory(config)
    except Exception as error:
        detail = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise InvalidProvider(f"cloud provider {quote(name)}: {detail}") from error
    if not isinstance(provider, CloudProvider):
        raise InvalidProvider(
            f"cloud provider {quote(name)}: its factory returned a {type(provider).__name__}"
        )
    return provider


def _points() -> tuple[EntryPoint, ...]:
    # Only for providers that are not built in: it brings what reads zip files and mail headers.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _load(name: str) -> Factory:
    for point in _points():
        if point.name == name:
            try:
                factory: Factory = point.load()
            except Exception as error:
                detail = f"{type(error).__name__}: {error}"
                raise InvalidProvider(f"cloud provider {quote(name)} cannot be loaded: {detail}") from error
            return factory
    raise UnknownProvider(unknown_provider(name))
