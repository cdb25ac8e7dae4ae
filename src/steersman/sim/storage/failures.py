"""Failures of simulated storage, on demand: an annotation with the message of the error makes an operation fail.

=====================  ========================================================================================
``provision-error``    of a claim or its StorageClass: no volume is provisioned
``delete-error``       of a volume or its StorageClass: the volume is not deleted
``attach-error``       of a volume, its StorageClass or the Node: the CSI driver does not attach the volume
``detach-error``       of a volume, its StorageClass or the Node: the CSI driver does not detach the volume
``expand-error``       of a claim, its volume or its StorageClass: the CSI driver does not expand the volume
=====================  ========================================================================================

All have the prefix ``sim.steersman.dev/``. Operations that failed are retried after 1 s, doubling to 5 min, as the parts of real
drivers do; once the annotation is removed, they succeed.
"""

from __future__ import annotations

from steersman.api.errors import NotFound
from steersman.api.generated import load, meta_v1, storage_v1
from steersman.api.scheme import Kind
from steersman.intent.actions import Address, Read
from steersman.intent.verdict import InvalidSpec

CLASSES: Kind[storage_v1.StorageClass] = load("storage.k8s.io", "v1", "StorageClass")
PREFIX = "sim.steersman.dev/"
RETRY_MIN = 1.0
RETRY_MAX = 300.0
"""Seconds between two attempts of an operation that fails."""


class StorageError(InvalidSpec):
    """An operation of the simulated storage failed, because an annotation says so or something is missing."""


def injected_error(operation: str, *objects: meta_v1.Object | None) -> str:
    """The message of the error that one of the objects asks for; empty where the operation succeeds."""
    for each in objects:
        message = "" if each is None else each.metadata.annotations.get(f"{PREFIX}{operation}-error", "")
        if message:
            return message
    return ""


async def read_class(name: str) -> storage_v1.StorageClass | None:
    """A StorageClass; None where there is none of this name."""
    if not name:
        return None
    try:
        found: storage_v1.StorageClass = await Read(Address(CLASSES, "", name))
    except NotFound:
        return None
    return found
