"""Bindings of volumes: finds a claim that is bound to a volume of another claim, at whatever time of a run."""

from __future__ import annotations

from typing import Any

from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from steersman.api.volume_binding import BIND_COMPLETED
from steersman.client.api import EventType
from steersman.server.storage.watch import Commit


class VolumeBindings:
    """The claims and volumes that are bound to each other."""

    def __init__(self) -> None:
        self._claims: dict[str, tuple[str, str]] = {}
        """The volume and the uid of each bound claim, by its key."""
        self._volumes: dict[str, str] = {}
        """The uid of the claim of each volume."""

    def note(self, commit: Commit) -> str:
        """Take in a change of a claim or volume; returns the violation, empty if it is none."""
        obj = None if commit.event.type is EventType.DELETED else commit.obj
        if commit.resource == PERSISTENTVOLUMECLAIMS.resource:
            return self._claim_changed(str(commit.key), obj)
        if commit.resource == PERSISTENTVOLUMES.resource:
            return self._volume_changed(commit.obj.metadata.name, obj)
        return ""

    def _claim_changed(self, key: str, claim: Any) -> str:
        before = self._claims.pop(key, None)
        if claim is None or BIND_COMPLETED not in claim.metadata.annotations:
            return ""
        volume, uid = claim.spec.volumeName, claim.metadata.uid
        self._claims[key] = volume, uid
        if before != (volume, uid) and self._volumes.get(volume, uid) != uid:
            return f"claim {claim.key} was bound to volume {volume}, which is another claim's"
        return ""

    def _volume_changed(self, name: str, volume: Any) -> str:
        before = self._volumes.pop(name, None)
        ref = volume.spec.claimRef if volume is not None else None
        if ref is None or not ref.uid:
            return ""
        self._volumes[name] = ref.uid
        for bound, uid in self._claims.values():
            if bound == name and uid != ref.uid and before != ref.uid:
                return f"volume {name} was bound to claim {ref.namespace}/{ref.name} as well"
        return ""
