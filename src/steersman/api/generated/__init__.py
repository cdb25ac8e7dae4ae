"""Every kind Kubernetes 1.36 serves by default, with every field: frozen structs, a module per group-version.

Some kinds that a feature gate adds are there, too (`gated_resources`).

The modules are made by ``tools/generate_api.py`` and imported when first asked for: `resources` lists what
there is from a static table, `load` brings in one kind::

    pods = load("", "v1", "Pod")        # imports core_v1 and registers its Pod
    pod = msgspec.json.decode(body, type=pods.type)

What is read is what is written: see the generator for how absent, null and zero are told apart.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from steersman.api.scheme import Kind, register


class Subresource(msgspec.Struct, frozen=True):
    """A path below an object, such as ``status`` or ``scale``."""

    name: str
    group: str
    version: str
    kind: str
    """The kind it speaks: the resource's own for ``status``, another group's for ``scale``."""
    verbs: tuple[str, ...]


class Resource(msgspec.Struct, frozen=True):
    """One served resource, as discovery tells it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    subresources: tuple[Subresource, ...]
    module: str
    """The module of its struct, in this package."""
    gate: str = ""
    """The feature gate that adds it; empty for a resource that is served by default."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def resources() -> tuple[Resource, ...]:
    """All resources served by default, in the order of discovery: groups by priority, each group's preferred version
    first."""
    from steersman.api.generated.table import RESOURCES

    return RESOURCES


def gated_resources() -> tuple[Resource, ...]:
    """The resources that feature gates add, in the order of their names."""
    from steersman.api.generated.table import GATED

    return GATED


@cache
def _by_kind() -> dict[tuple[str, str, str], Resource]:
    known = (*resources(), *gated_resources())
    return {(resource.group, resource.version, resource.kind): resource for resource in known}


def resource(group: str, version: str, kind: str) -> Resource:
    """One resource by its kind. Raises `LookupError` for one that is never served."""
    try:
        return _by_kind()[group, version, kind]
    except KeyError:
        raise LookupError(f"no resource {kind} in {group or 'core'}/{version}") from None


_loaded: dict[tuple[str, str, str], Kind[Any]] = {}


def load(group: str, version: str, kind: str) -> Kind[Any]:
    """A kind with its full struct, registered, so that `kind_of` knows its objects.

    Also knows the kinds that are only ever the body of a request or an answer, such as ``Scale``,
    ``Eviction`` and ``Status``; those have no path of their own and an empty ``plural``. Raises
    `LookupError` for a kind that is never served.
    """
    known = _loaded.get((group, version, kind))
    if known is not None:
        return known
    from steersman.api.generated.table import BODIES

    module = BODIES.get((group, version, kind))
    plural, namespaced = "", False
    if module is None:
        found = resource(group, version, kind)
        module, plural, namespaced = found.module, found.plural, found.namespaced
    struct = getattr(import_module(f"{__name__}.{module}"), kind)
    loaded: Kind[Any] = register(Kind(group, version, kind, plural, namespaced, struct))
    _loaded[group, version, kind] = loaded
    return loaded
