"""Safety invariants of attached volumes, for `steersman.explore.safety`.

| invariant | violated when |
|---|---|
| ``attachments`` | a volume whose access modes let one node have it gets a VolumeAttachment to a second node, while another node has it attached and detaching it has not failed |
| ``detaches`` | a VolumeAttachment is deleted while its node reports the volume as attached, or, being ready and in service, has it mounted |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.conditions import is_condition_true
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.storage import PERSISTENTVOLUMES
from steersman.client.api import EventType
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Commit

SHARED = ("ReadWriteMany", "ReadOnlyMany")
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class AttachmentMonitor:
    """Checks each commit of a VolumeAttachment; the first violation of each invariant is kept in ``violations``."""

    def __init__(self, violations: dict[str, str], object_at: Callable[[str, str], Any]) -> None:
        self._violations = violations
        self._object_at = object_at
        self._attachments: dict[str, Any] = {}

    def check(self, commit: Commit) -> None:
        """Look at a commit."""
        attachment, name = commit.obj, commit.obj.metadata.name
        known = self._attachments.get(name)
        if commit.event.type is EventType.DELETED:
            self._attachments.pop(name, None)
            if known is not None and known.metadata.deletionTimestamp is None:
                self._deleted(known)
            return
        if known is None:
            self._created(attachment)
        elif known.metadata.deletionTimestamp is None and attachment.metadata.deletionTimestamp is not None:
            self._deleted(attachment)
        self._attachments[name] = attachment

    def _spec(self, attachment: Any) -> Any:
        """The spec of the PersistentVolume, or of the inline volume; None if it is gone."""
        source = attachment.spec.source
        if source.inlineVolumeSpec is not None:
            return source.inlineVolumeSpec
        pv = self._object_at(PERSISTENTVOLUMES.resource, object_key("", source.persistentVolumeName or ""))
        return pv.spec if pv is not None else None

    def _unique_name(self, attachment: Any) -> str:
        """The name in a node's status; empty where the volume is gone or is no CSI volume."""
        spec = self._spec(attachment)
        if spec is None or spec.csi is None:
            return ""
        return f"kubernetes.io/csi/{spec.csi.driver}^{spec.csi.volumeHandle}"

    def _created(self, attachment: Any) -> None:
        spec, name = self._spec(attachment), self._unique_name(attachment)
        if not name or not spec.accessModes or any(mode in SHARED for mode in spec.accessModes):
            return
        for other in self._attachments.values():
            status = other.status
            if self._unique_name(other) == name and status.attached and status.detachError is None:
                message = f"{name} is attached to {other.spec.nodeName} and gets an attachment to {attachment.spec.nodeName}"
                self._violations.setdefault("attachments", message)

    def _deleted(self, attachment: Any) -> None:
        node = self._object_at(NODES.resource, object_key("", attachment.spec.nodeName))
        name = self._unique_name(attachment)
        if node is None or not name:
            return
        if any(volume.name == name for volume in node.status.volumesAttached):
            self._violations.setdefault(
                "detaches", f"{name} is detached while {node.metadata.name} reports it"
            )
        in_service = all(taint.key != OUT_OF_SERVICE for taint in node.spec.taints)
        ready = is_condition_true(node.status.conditions, "Ready")
        if name in node.status.volumesInUse and ready and in_service:
            self._violations.setdefault(
                "detaches", f"{name} is detached while {node.metadata.name} has it mounted"
            )
