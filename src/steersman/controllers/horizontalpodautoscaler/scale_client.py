"""Scale client: reads and updates the scale subresource of an autoscaler's target, whatever its kind."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError, Conflict
from steersman.api.kinds.autoscaling import CrossVersionObjectReference
from steersman.api.scheme import Kind
from steersman.intent.actions import Address, Read, Update


class UnknownKind(Exception):
    """No resource of the kind is served."""


class InvalidReference(UnknownKind):
    """The apiVersion of the reference cannot be parsed."""


class Scale(msgspec.Struct, frozen=True):
    """A scale subresource, and the object it belongs to."""

    kind: Kind[Any]
    namespace: str
    name: str
    document: dict[str, Any]

    @property
    def replicas(self) -> int:
        """``spec.replicas``."""
        return int((self.document.get("spec") or {}).get("replicas", 0))

    @property
    def status_replicas(self) -> int:
        """``status.replicas``."""
        return int((self.document.get("status") or {}).get("replicas", 0))

    @property
    def selector(self) -> str:
        """``status.selector``, in string form."""
        return str((self.document.get("status") or {}).get("selector", ""))


async def read_scale(
    reference: CrossVersionObjectReference, namespace: str, discovered: DiscoveryResult
) -> Scale:
    """Reads the scale of the referenced object, in any version of its group. Raises `UnknownKind` or `ApiError`."""
    if reference.apiVersion.count("/") > 1:
        raise InvalidReference(f"unexpected GroupVersion string: {reference.apiVersion}")
    group = reference.apiVersion.rpartition("/")[0]
    found = [one for one in discovered.resources if (one.group, one.kind) == (group, reference.kind)]
    if not found:
        raise UnknownKind(f'no matches for kind "{reference.kind}" in group "{group}"')
    failure: ApiError | None = None
    for resource in found:
        try:
            return await _get(resource.partial, namespace, reference.name)
        except ApiError as error:
            failure = failure or error
    assert failure is not None
    raise failure


async def update_scale(scale: Scale, replicas: int) -> None:
    """Sets ``spec.replicas``; once more on the current scale after a conflict."""
    try:
        await _put(scale, replicas)
    except Conflict:
        await _put(await _get(scale.kind, scale.namespace, scale.name), replicas)


async def _get(kind: Kind[Any], namespace: str, name: str) -> Scale:
    document: dict[str, Any] = await Read(Address(kind.untyped, namespace, name), "scale")
    return Scale(kind, namespace, name, document)


async def _put(scale: Scale, replicas: int) -> None:
    body = {**scale.document, "spec": {**(scale.document.get("spec") or {}), "replicas": replicas}}
    await Update(Address(scale.kind.untyped, scale.namespace, scale.name), body, "scale")
