"""Validation of a pod's volumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.validation import claims, names
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods import environment
from steersman.server.validation.pods.containers import PULL_POLICIES
from steersman.server.validation.resources import parse_quantity
from steersman.server.validation.volumes import (
    SHARED_SOURCES,
    SourceRule,
    validate_csi_driver_name,
    validate_file_mode,
    validate_one_source,
)


def validate_volumes(
    errors: FieldErrors, path: str, volumes: tuple[v1.Volume, ...], meta: ObjectMeta | None
) -> Mapping[str, v1.Volume]:
    """Validates the volumes; returns the valid ones by name. ``meta`` is the pod's, or None for a template."""
    valid: dict[str, v1.Volume] = {}
    claim_names = () if meta is None or not meta.name else _ephemeral_claim_names(volumes, meta.name)
    for i, volume in enumerate(volumes):
        at, name = f"{path}[{i}]", volume.name
        before = len(errors)
        _validate_volume_source(errors, at, volume, meta)
        if not name:
            errors.required(f"{at}.name")
        else:
            errors.invalid_each(f"{at}.name", name, names.dns1123_label(name))
        if name in valid:
            errors.duplicate(f"{at}.name", name)
        if len(errors) == before:
            valid[name] = volume
        claim = volume.persistentVolumeClaim
        if claim is not None and claim.claimName in claim_names:
            others = "must not reference a PVC that gets created for an ephemeral volume"
            errors.invalid(f"{at}.persistentVolumeClaim.claimName", claim.claimName, others)
    return valid


def _ephemeral_claim_names(volumes: Iterable[v1.Volume], pod: str) -> tuple[str, ...]:
    return tuple(f"{pod}-{volume.name}" for volume in volumes if volume.ephemeral is not None)


def _validate_volume_source(
    errors: FieldErrors, path: str, volume: v1.Volume, meta: ObjectMeta | None
) -> None:
    source = validate_one_source(errors, path, volume, _SOURCES)
    name = volume.name
    if source == "ephemeral" and meta is not None and meta.name and name:
        claim = f"{meta.name}-{name}"
        for detail in names.dns1123_subdomain(claim):
            errors.invalid(f"{path}.name", name, f'PVC name "{claim}": {detail}')
    if source == "image" and volume.image is not None:
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


def _validate_empty_dir(errors: FieldErrors, path: str, source: v1.EmptyDirVolumeSource) -> None:
    if source.sizeLimit is not None and parse_quantity(source.sizeLimit).nanos < 0:
        errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _validate_git_repo(errors: FieldErrors, path: str, source: v1.GitRepoVolumeSource) -> None:
    if not source.repository:
        errors.required(f"{path}.repository")
    names.validate_descending_path(errors, f"{path}.directory", source.directory)


def _validate_secret(errors: FieldErrors, path: str, source: v1.SecretVolumeSource) -> None:
    if not source.secretName:
        errors.required(f"{path}.secretName")
    _validate_items(errors, path, source)


def _validate_config_map(errors: FieldErrors, path: str, source: v1.ConfigMapVolumeSource) -> None:
    if not source.name:
        errors.required(f"{path}.name")
    _validate_items(errors, path, source)


def _validate_items(
    errors: FieldErrors, path: str, source: v1.SecretVolumeSource | v1.ConfigMapVolumeSource
) -> None:
    validate_file_mode(errors, f"{path}.defaultMode", source.defaultMode)
    for i, item in enumerate(source.items):
        validate_key_to_path(errors, f"{path}.items[{i}]", item)


def _validate_claim_source(
    errors: FieldErrors, path: str, source: v1.PersistentVolumeClaimVolumeSource
) -> None:
    if not source.claimName:
        errors.required(f"{path}.claimName")


def _validate_downward_api(errors: FieldErrors, path: str, source: v1.DownwardAPIVolumeSource) -> None:
    validate_file_mode(errors, f"{path}.defaultMode", source.defaultMode)
    for item in source.items:
        validate_downward_api_file(errors, path, item)


def _validate_csi(errors: FieldErrors, path: str, source: v1.CSIVolumeSource) -> None:
    validate_csi_driver_name(errors, f"{path}.driver", source.driver)
    reference = source.nodePublishSecretRef
    if reference is not None:
        if not reference.name:
            errors.required(f"{path}.nodePublishSecretRef.name")
        else:
            errors.invalid_each(f"{path}.name", reference.name, names.dns1123_subdomain(reference.name))


def _validate_ephemeral(errors: FieldErrors, path: str, source: v1.EphemeralVolumeSource) -> None:
    template = source.volumeClaimTemplate
    if template is None:
        errors.required(f"{path}.volumeClaimTemplate")
    else:
        claims.validate_claim_template(errors, f"{path}.volumeClaimTemplate", template)


def _validate_image(errors: FieldErrors, path: str, source: v1.ImageVolumeSource) -> None:
    """Validated in `_validate_volume_source`, since the rule depends on whether there is a pod."""


# -- projected files ---------------------------------------------------------------------------

_MIN_TOKEN_SECONDS = 10 * 60
_DUPLICATE_PATHS = "conflicting duplicate paths"


def validate_key_to_path(errors: FieldErrors, path: str, item: v1.KeyToPath) -> None:
    """Validates the file a key is projected to."""
    if not item.key:
        errors.required(f"{path}.key")
    if not item.path:
        errors.required(f"{path}.path")
    names.validate_nonreserved_path(errors, f"{path}.path", item.path)
    validate_file_mode(errors, f"{path}.mode", item.mode)


def validate_downward_api_file(errors: FieldErrors, path: str, file: v1.DownwardAPIVolumeFile) -> None:
    """Validates a file of the downward API."""
    if not file.path:
        errors.required(f"{path}.path")
    names.validate_nonreserved_path(errors, f"{path}.path", file.path)
    if file.fieldRef is not None:
        environment.validate_field_ref(errors, f"{path}.fieldRef", file.fieldRef, environment.VOLUME_FIELDS)
        if file.resourceFieldRef is not None:
            both = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.invalid(path, "resource", both)
    elif file.resourceFieldRef is not None:
        environment.validate_resource_field_ref(
            errors, f"{path}.resourceFieldRef", file.resourceFieldRef, needs_container=True
        )
    else:
        errors.required(path, "one of fieldRef and resourceFieldRef is required")
    validate_file_mode(errors, f"{path}.mode", file.mode)


def validate_projected_volume(errors: FieldErrors, path: str, source: v1.ProjectedVolumeSource) -> None:
    validate_file_mode(errors, f"{path}.defaultMode", source.defaultMode)
    taken: set[str] = set()
    for i, projection in enumerate(source.sources or ()):
        _validate_projection(errors, path, f"{path}.sources[{i}]", projection, taken)


def _validate_projection(
    errors: FieldErrors, path: str, at: str, projection: v1.VolumeProjection, taken: set[str]
) -> None:
    def file(name: str, shown: str) -> None:
        """Adds an error where two sources project the same file."""
        if name and name in taken:
            errors.invalid(path, shown, _DUPLICATE_PATHS)
        taken.add(name)

    count = 0
    source: v1.SecretProjection | v1.ConfigMapProjection | None
    for name, source in (("secret", projection.secret), ("configMap", projection.configMap)):
        if source is None:
            continue
        count += 1
        if not source.name:
            errors.required(f"{at}.{name}.name")
        for i, item in enumerate(source.items):
            validate_key_to_path(errors, f"{at}.{name}.items[{i}]", item)
            file(item.path, source.name)
    if projection.downwardAPI is not None:
        count += 1
        for downward in projection.downwardAPI.items:
            validate_downward_api_file(errors, f"{at}.downwardAPI", downward)
            file(downward.path, downward.path)
    if projection.serviceAccountToken is not None:
        count += 1
        _validate_token_projection(errors, path, f"{at}.serviceAccountToken", projection.serviceAccountToken)
    if count > 1:
        errors.forbidden(at, "may not specify more than 1 volume type per source")


def _validate_token_projection(
    errors: FieldErrors, volume: str, path: str, source: v1.ServiceAccountTokenProjection
) -> None:
    seconds = source.expirationSeconds
    if seconds is not None and seconds < _MIN_TOKEN_SECONDS:
        short = "may not specify a duration less than 10 minutes"
        errors.invalid(f"{path}.expirationSeconds", seconds, short)
    if seconds is not None and seconds > 1 << 32:
        long = "may not specify a duration larger than 2^32 seconds"
        errors.invalid(f"{path}.expirationSeconds", seconds, long)
    if not source.path:
        errors.required(f"{volume}.path")
    else:
        names.validate_nonreserved_path(errors, f"{volume}.path", source.path)


_SOURCES: Mapping[str, SourceRule] = {
    "emptyDir": _validate_empty_dir,
    "hostPath": SHARED_SOURCES["hostPath"],
    "gitRepo": _validate_git_repo,
    "gcePersistentDisk": SHARED_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": SHARED_SOURCES["awsElasticBlockStore"],
    "secret": _validate_secret,
    "nfs": SHARED_SOURCES["nfs"],
    "iscsi": SHARED_SOURCES["iscsi"],
    "glusterfs": SHARED_SOURCES["glusterfs"],
    "flocker": SHARED_SOURCES["flocker"],
    "persistentVolumeClaim": _validate_claim_source,
    "rbd": SHARED_SOURCES["rbd"],
    "cinder": SHARED_SOURCES["cinder"],
    "cephfs": SHARED_SOURCES["cephfs"],
    "quobyte": SHARED_SOURCES["quobyte"],
    "downwardAPI": _validate_downward_api,
    "fc": SHARED_SOURCES["fc"],
    "flexVolume": SHARED_SOURCES["flexVolume"],
    "configMap": _validate_config_map,
    "azureFile": SHARED_SOURCES["azureFile"],
    "vsphereVolume": SHARED_SOURCES["vsphereVolume"],
    "photonPersistentDisk": SHARED_SOURCES["photonPersistentDisk"],
    "portworxVolume": SHARED_SOURCES["portworxVolume"],
    "azureDisk": SHARED_SOURCES["azureDisk"],
    "storageos": SHARED_SOURCES["storageos"],
    "projected": validate_projected_volume,
    "scaleIO": SHARED_SOURCES["scaleIO"],
    "csi": _validate_csi,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}
"""The volume sources, in upstream's order of validation."""
