"""The volumes of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.validation import claims, names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods.containers import PULL_POLICIES
from steersman.server.validation.pods.projected import downward_file, key_to_path, projected
from steersman.server.validation.resources import quantity
from steersman.server.validation.volumes import SHARED, Check, driver_name, mode, only_one


def check(
    errors: FieldErrors, path: str, volumes: tuple[v1.Volume, ...], meta: ObjectMeta | None
) -> Mapping[str, v1.Volume]:
    """All volumes; answers with the sound ones by name. ``meta`` is the pod's, for a template None."""
    sound: dict[str, v1.Volume] = {}
    made = () if meta is None or not meta.name else _claims(volumes, meta.name)
    for i, volume in enumerate(volumes):
        at, name = f"{path}[{i}]", volume.name
        before = len(errors)
        _source(errors, at, volume, meta)
        if not name:
            errors.required(f"{at}.name")
        else:
            errors.invalid_each(f"{at}.name", name, names.label(name))
        if name in sound:
            errors.duplicate(f"{at}.name", name)
        if len(errors) == before:
            sound[name] = volume
        claim = volume.persistentVolumeClaim
        if claim is not None and claim.claimName in made:
            others = "must not reference a PVC that gets created for an ephemeral volume"
            errors.invalid(f"{at}.persistentVolumeClaim.claimName", claim.claimName, others)
    return sound


def _claims(volumes: Iterable[v1.Volume], pod: str) -> tuple[str, ...]:
    return tuple(f"{pod}-{volume.name}" for volume in volumes if volume.ephemeral is not None)


def _source(errors: FieldErrors, path: str, volume: v1.Volume, meta: ObjectMeta | None) -> None:
    first = only_one(errors, path, volume, _CHECKS)
    name = volume.name
    if first == "ephemeral" and meta is not None and meta.name and name:
        claim = f"{meta.name}-{name}"
        for why in names.subdomain(claim):
            errors.invalid(f"{path}.name", name, f'PVC name "{claim}": {why}')
    if first == "image" and volume.image is not None:
        if meta is not None and not volume.image.reference:
            errors.required(f"{path}.image.reference")
        errors.enum(f"{path}.image.pullPolicy", volume.image.pullPolicy, PULL_POLICIES)
    iscsi = volume.iscsi
    if iscsi is not None and iscsi.initiatorName is not None and len(name) + len(iscsi.targetPortal) > 63:
        errors.invalid(
            f"{path}.name",
            name,
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            "iscsi.initiatorName is specified.",
        )


def _empty_dir(errors: FieldErrors, path: str, source: v1.EmptyDirVolumeSource) -> None:
    if source.sizeLimit is not None and quantity(source.sizeLimit).nanos < 0:
        errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _git(errors: FieldErrors, path: str, source: v1.GitRepoVolumeSource) -> None:
    if not source.repository:
        errors.required(f"{path}.repository")
    names.descending(errors, f"{path}.directory", source.directory)


def _secret(errors: FieldErrors, path: str, source: v1.SecretVolumeSource) -> None:
    if not source.secretName:
        errors.required(f"{path}.secretName")
    _files(errors, path, source)


def _config_map(errors: FieldErrors, path: str, source: v1.ConfigMapVolumeSource) -> None:
    if not source.name:
        errors.required(f"{path}.name")
    _files(errors, path, source)


def _files(errors: FieldErrors, path: str, source: v1.SecretVolumeSource | v1.ConfigMapVolumeSource) -> None:
    mode(errors, f"{path}.defaultMode", source.defaultMode)
    for i, item in enumerate(source.items):
        key_to_path(errors, f"{path}.items[{i}]", item)


def _claim(errors: FieldErrors, path: str, source: v1.PersistentVolumeClaimVolumeSource) -> None:
    if not source.claimName:
        errors.required(f"{path}.claimName")


def _downward(errors: FieldErrors, path: str, source: v1.DownwardAPIVolumeSource) -> None:
    mode(errors, f"{path}.defaultMode", source.defaultMode)
    for item in source.items:
        downward_file(errors, path, item)


def _csi(errors: FieldErrors, path: str, source: v1.CSIVolumeSource) -> None:
    driver_name(errors, f"{path}.driver", source.driver)
    reference = source.nodePublishSecretRef
    if reference is not None:
        if not reference.name:
            errors.required(f"{path}.nodePublishSecretRef.name")
        else:
            errors.invalid_each(f"{path}.name", reference.name, names.subdomain(reference.name))


def _ephemeral(errors: FieldErrors, path: str, source: v1.EphemeralVolumeSource) -> None:
    template = source.volumeClaimTemplate
    if template is None:
        errors.required(f"{path}.volumeClaimTemplate")
    else:
        claims.template(errors, f"{path}.volumeClaimTemplate", template)


def _image(errors: FieldErrors, path: str, source: v1.ImageVolumeSource) -> None:
    """Looked at by whoever knows whether it is a pod's."""


_CHECKS: Mapping[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": SHARED["hostPath"],
    "gitRepo": _git,
    "gcePersistentDisk": SHARED["gcePersistentDisk"],
    "awsElasticBlockStore": SHARED["awsElasticBlockStore"],
    "secret": _secret,
    "nfs": SHARED["nfs"],
    "iscsi": SHARED["iscsi"],
    "glusterfs": SHARED["glusterfs"],
    "flocker": SHARED["flocker"],
    "persistentVolumeClaim": _claim,
    "rbd": SHARED["rbd"],
    "cinder": SHARED["cinder"],
    "cephfs": SHARED["cephfs"],
    "quobyte": SHARED["quobyte"],
    "downwardAPI": _downward,
    "fc": SHARED["fc"],
    "flexVolume": SHARED["flexVolume"],
    "configMap": _config_map,
    "azureFile": SHARED["azureFile"],
    "vsphereVolume": SHARED["vsphereVolume"],
    "photonPersistentDisk": SHARED["photonPersistentDisk"],
    "portworxVolume": SHARED["portworxVolume"],
    "azureDisk": SHARED["azureDisk"],
    "storageos": SHARED["storageos"],
    "projected": projected,
    "scaleIO": SHARED["scaleIO"],
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""In the order they are looked at."""
