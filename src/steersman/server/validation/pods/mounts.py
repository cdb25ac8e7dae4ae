"""Validation of a container's volumeMounts and volumeDevices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors

AnyContainer: TypeAlias = v1.Container | v1.EphemeralContainer
Volumes: TypeAlias = Mapping[str, v1.Volume]

_MOUNT_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_volume_mounts(errors: FieldErrors, path: str, container: AnyContainer, volumes: Volumes) -> None:
    """Validates the volume mounts of a container."""
    devices = {device.name: device.devicePath for device in container.volumeDevices}
    points: set[str] = set()
    for i, mount in enumerate(container.volumeMounts):
        at = f"{path}[{i}]"
        if not mount.name:
            errors.required(f"{at}.name")
        if mount.name not in volumes:
            errors.not_found(f"{at}.name", mount.name)
        if not mount.mountPath:
            errors.required(f"{at}.mountPath")
        if mount.mountPath in points:
            errors.invalid(f"{at}.mountPath", mount.mountPath, "must be unique")
        points.add(mount.mountPath)
        if mount.name in devices:
            errors.invalid(f"{at}.name", mount.name, "must not already exist in volumeDevices")
        if mount.mountPath in devices.values():
            taken = "must not already exist as a path in volumeDevices"
            errors.invalid(f"{at}.mountPath", mount.mountPath, taken)
        # From here on upstream leaves the index out of the path.
        if mount.subPath:
            names.validate_descending_path(errors, f"{path}.subPath", mount.subPath)
        if mount.subPathExpr:
            if mount.subPath:
                both = "subPathExpr and subPath are mutually exclusive"
                errors.invalid(f"{at}.subPathExpr", mount.subPathExpr, both)
            names.validate_descending_path(errors, f"{path}.subPathExpr", mount.subPathExpr)
        if mount.mountPropagation is not None:
            _validate_mount_propagation(errors, f"{path}.mountPropagation", mount.mountPropagation, container)
        if mount.recursiveReadOnly is not None:
            _validate_recursive_read_only(errors, f"{path}.recursiveReadOnly", mount)


def _validate_mount_propagation(
    errors: FieldErrors, path: str, propagation: str, container: AnyContainer
) -> None:
    if propagation not in _MOUNT_PROPAGATIONS:
        errors.not_supported(path, propagation, _MOUNT_PROPAGATIONS)
    context = container.securityContext
    if propagation == "Bidirectional" and not (context is not None and context.privileged):
        errors.forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _validate_recursive_read_only(errors: FieldErrors, path: str, mount: v1.VolumeMount) -> None:
    if mount.recursiveReadOnly not in _RECURSIVE_READ_ONLY:
        errors.not_supported(path, mount.recursiveReadOnly, _RECURSIVE_READ_ONLY)
    elif mount.recursiveReadOnly != "Disabled":
        if not mount.readOnly:
            errors.forbidden(path, "may only be specified when readOnly is true")
        if mount.mountPropagation not in (None, "None"):
            errors.forbidden(path, "may only be specified when mountPropagation is None or not specified")


def validate_volume_devices(
    errors: FieldErrors, path: str, container: AnyContainer, volumes: Volumes
) -> None:
    """Validates the block devices of a container."""
    mounted = {mount.name: mount.mountPath for mount in container.volumeMounts}
    paths: set[str] = set()
    names: set[str] = set()
    for i, device in enumerate(container.volumeDevices):
        at = f"{path}[{i}]"
        name, device_path = device.name, device.devicePath
        volume = volumes.get(name)
        if not name:
            errors.required(f"{at}.name")
        if name in names:
            errors.invalid(f"{at}.name", name, "must be unique")
        if volume is None:
            errors.not_found(f"{at}.name", name)
        elif volume.persistentVolumeClaim is None and volume.ephemeral is None:
            errors.invalid(
                f"{at}.name",
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )
        if not device_path:
            errors.required(f"{at}.devicePath")
        if device_path in paths:
            errors.invalid(f"{at}.devicePath", device_path, "must be unique")
        if ".." in device_path.split("/"):
            errors.invalid(f"{at}.devicePath", device_path, "can not contain backsteps ('..')")
        else:
            paths.add(device_path)
        if name in mounted:
            errors.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if device_path in mounted.values():
            errors.invalid(
                f"{at}.devicePath", device_path, "must not already exist as a path in volumeMounts"
            )
        if name:
            names.add(name)
