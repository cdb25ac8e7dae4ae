"""What an autoscaler scales: anything with a scale."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.discovery import Discovered
from steersman.api.errors import ApiError
from steersman.api.kinds.autoscaling import CrossVersionObjectReference
from steersman.api.scheme import Kind
from steersman.intent.actions import Address, Read


class Unknown(Exception):
    """Nothing of that kind is served."""


class Misspelt(Unknown):
    """Nothing of that kind can be: the reference is no reference."""


class Target(msgspec.Struct, frozen=True):
    """A scale, and where it is."""

    kind: Kind[Any]
    namespace: str
    name: str
    scale: dict[str, Any]

    @property
    def replicas(self) -> int:
        """How many are wanted."""
        return int((self.scale.get("spec") or {}).get("replicas", 0))

    @property
    def counted(self) -> int:
        """How many there are."""
        return int((self.scale.get("status") or {}).get("replicas", 0))

    @property
    def selector(self) -> str:
        return str((self.scale.get("status") or {}).get("selector", ""))

    async def again(self) -> Target:
        """The same, read anew."""
        return Target(
            self.kind, self.namespace, self.name, await _scale(self.kind, self.namespace, self.name)
        )


async def _scale(kind: Kind[Any], namespace: str, name: str) -> dict[str, Any]:
    scale: dict[str, Any] = await Read(Address(kind.untyped, namespace, name), "scale")
    return scale


async def read_scale(reference: CrossVersionObjectReference, namespace: str, served: Discovered) -> Target:
    """The scale of what a reference names, in any version of its group. Raises `Unknown` or `ApiError`."""
    if reference.apiVersion.count("/") > 1:
        raise Misspelt(f"unexpected GroupVersion string: {reference.apiVersion}")
    group = reference.apiVersion.rpartition("/")[0]
    found = [one for one in served.resources if (one.group, one.kind) == (group, reference.kind)]
    if not found:
        raise Unknown(f'no matches for kind "{reference.kind}" in group "{group}"')
    failure: ApiError | None = None
    for resource in found:
        try:
            scale = await _scale(resource.partial, namespace, reference.name)
        except ApiError as error:
            failure = failure or error
            continue
        return Target(resource.partial, namespace, reference.name, scale)
    assert failure is not None
    raise failure
