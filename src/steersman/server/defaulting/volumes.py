"""Defaults of pod volumes, PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from steersman.api.bounded_cache import short_cache
from steersman.api.generated import core_v1 as v1
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_quantities,
    canonical_quantity,
    default_if_none,
    default_if_zero,
    map_items,
    map_optional,
    put,
)

Files = TypeVar("Files", v1.SecretVolumeSource, v1.ConfigMapVolumeSource)
ISCSI = TypeVar("ISCSI", v1.ISCSIVolumeSource, v1.ISCSIPersistentVolumeSource)
RBD = TypeVar("RBD", v1.RBDVolumeSource, v1.RBDPersistentVolumeSource)
ScaleIO = TypeVar("ScaleIO", v1.ScaleIOVolumeSource, v1.ScaleIOPersistentVolumeSource)

_FILE_MODE = 0o644


_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])"
_MAX_IMAGE_NAME = 255
"""Characters of the name of an image, with the domain of its registry."""
_match_image = re.compile(
    rf"(?P<name>(?:{_DOMAIN}(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?P<tag>:[\w][\w.-]{0,127})?(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
).fullmatch


@short_cache(1024)
def image_pull_policy(image: str) -> str:
    """Always for the tag ``latest``, explicit or implied; IfNotPresent otherwise and for unparseable images."""
    found = _match_image(image)
    if found is None or len(found["name"]) > _MAX_IMAGE_NAME:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else ":latest")
    return "Always" if tag == ":latest" else "IfNotPresent"


def default_volume(given: v1.Volume) -> v1.Volume:
    """Defaults of a pod's volume; a volume without a source is an emptyDir."""
    sources = [name for name in _SOURCE_FIELDS if getattr(given, name) is not None]
    if not sources:
        return put(given, emptyDir=v1.EmptyDirVolumeSource())
    changes = {name: _POD_SOURCES[name](getattr(given, name)) for name in sources if name in _POD_SOURCES}
    return put(given, **changes) if changes else given


_SOURCE_FIELDS = tuple(name for name in v1.Volume.__struct_fields__ if name != "name")


def _default_file_mode(source: Files) -> Files:
    return default_if_none(source, defaultMode=_FILE_MODE)


def default_host_path(source: v1.HostPathVolumeSource) -> v1.HostPathVolumeSource:
    return default_if_none(source, type="")


def _default_empty_dir(source: v1.EmptyDirVolumeSource) -> v1.EmptyDirVolumeSource:
    return put(source, sizeLimit=map_optional(source.sizeLimit, canonical_quantity))


def _default_image(source: v1.ImageVolumeSource) -> v1.ImageVolumeSource:
    return default_if_zero(source, pullPolicy=image_pull_policy(source.reference))


def _default_downward_api(source: v1.DownwardAPIVolumeSource) -> v1.DownwardAPIVolumeSource:
    return put(
        default_if_none(source, defaultMode=_FILE_MODE),
        items=map_items(source.items, _default_downward_api_file),
    )


def _default_downward_api_file(file: v1.DownwardAPIVolumeFile) -> v1.DownwardAPIVolumeFile:
    return put(
        file,
        fieldRef=map_optional(file.fieldRef, lambda ref: default_if_zero(ref, apiVersion="v1")),
        resourceFieldRef=map_optional(
            file.resourceFieldRef, lambda ref: put(ref, divisor=canonical_quantity(ref.divisor))
        ),
    )


def _default_projected(source: v1.ProjectedVolumeSource) -> v1.ProjectedVolumeSource:
    return put(
        default_if_none(source, defaultMode=_FILE_MODE),
        sources=map_optional(source.sources, lambda sources: map_items(sources, _default_projection)),
    )


def _default_projection(source: v1.VolumeProjection) -> v1.VolumeProjection:
    return put(
        source,
        serviceAccountToken=map_optional(
            source.serviceAccountToken, lambda token: default_if_none(token, expirationSeconds=3600)
        ),
        downwardAPI=map_optional(
            source.downwardAPI, lambda api: put(api, items=map_items(api.items, _default_downward_api_file))
        ),
        # These belong to feature gates that are off.
        clusterTrustBundle=None,
        podCertificate=None,
    )


def _default_ephemeral(source: v1.EphemeralVolumeSource) -> v1.EphemeralVolumeSource:
    claim = source.volumeClaimTemplate
    return (
        source
        if claim is None
        else put(source, volumeClaimTemplate=put(claim, spec=default_claim_spec(claim.spec)))
    )


def _default_iscsi(source: ISCSI) -> ISCSI:
    return default_if_zero(source, iscsiInterface="default")


def _default_rbd(source: RBD) -> RBD:
    return default_if_zero(source, pool="rbd", user="admin", keyring="/etc/ceph/keyring")


def _default_azure_disk(source: v1.AzureDiskVolumeSource) -> v1.AzureDiskVolumeSource:
    return default_if_none(source, cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared")


def _default_scale_io(source: ScaleIO) -> ScaleIO:
    return default_if_zero(source, storageMode="ThinProvisioned", fsType="xfs")


_POD_SOURCES: Mapping[str, Default] = {
    "azureDisk": _default_azure_disk,
    "configMap": _default_file_mode,
    "downwardAPI": _default_downward_api,
    "emptyDir": _default_empty_dir,
    "ephemeral": _default_ephemeral,
    "hostPath": default_host_path,
    "image": _default_image,
    "iscsi": _default_iscsi,
    "projected": _default_projected,
    "rbd": _default_rbd,
    "scaleIO": _default_scale_io,
    "secret": _default_file_mode,
}


# -- persistent volumes and claims ------------------------------------------------------------


def default_persistent_volume(obj: v1.PersistentVolume) -> v1.PersistentVolume:
    spec = default_if_zero(obj.spec, persistentVolumeReclaimPolicy="Retain")
    spec = default_if_none(spec, volumeMode="Filesystem")
    spec = put(
        spec,
        capacity=canonical_quantities(spec.capacity),
        azureDisk=map_optional(spec.azureDisk, _default_azure_disk),
        hostPath=map_optional(spec.hostPath, default_host_path),
        iscsi=map_optional(spec.iscsi, _default_iscsi),
        rbd=map_optional(spec.rbd, _default_rbd),
        scaleIO=map_optional(spec.scaleIO, _default_scale_io),
    )
    return put(obj, spec=spec, status=default_if_zero(obj.status, phase="Pending"))


def default_claim(obj: v1.PersistentVolumeClaim) -> v1.PersistentVolumeClaim:
    return put(
        obj,
        spec=default_claim_spec(obj.spec),
        status=_default_claim_status(obj.status),
    )


def _default_claim_status(status: v1.PersistentVolumeClaimStatus) -> v1.PersistentVolumeClaimStatus:
    return put(
        default_if_zero(status, phase="Pending"),
        allocatedResources=canonical_quantities(status.allocatedResources),
        capacity=canonical_quantities(status.capacity),
    )


def default_claim_spec(spec: v1.PersistentVolumeClaimSpec) -> v1.PersistentVolumeClaimSpec:
    """Defaults of the spec of claims and claim templates."""
    resources = spec.resources
    resources = put(
        resources,
        limits=canonical_quantities(resources.limits),
        requests=canonical_quantities(resources.requests),
    )
    return put(default_if_none(spec, volumeMode="Filesystem"), resources=resources)


_SNAPSHOTS = "snapshot.storage.k8s.io"


def normalize_data_sources(spec: v1.PersistentVolumeClaimSpec) -> v1.PersistentVolumeClaimSpec:
    """Keeps dataSource and dataSourceRef in step; dataSource can only be a claim or a snapshot.

    That is not defaulting: the field manager owns what it has sent.
    """
    source, reference = spec.dataSource, spec.dataSourceRef
    if reference is not None and reference.namespace:
        # References into other namespaces belong to a feature gate that is off.
        reference = None
    if source is not None:
        claims = source.kind == "PersistentVolumeClaim" and not source.apiGroup
        if not claims and (source.kind, source.apiGroup) != ("VolumeSnapshot", _SNAPSHOTS):
            source = None
    if source is not None and reference is None:
        reference = v1.TypedObjectReference(apiGroup=source.apiGroup, kind=source.kind, name=source.name)
    elif source is None and reference is not None:
        source = v1.TypedLocalObjectReference(
            apiGroup=reference.apiGroup, kind=reference.kind, name=reference.name
        )
    if (source, reference) == (spec.dataSource, spec.dataSourceRef):
        return spec
    return put(spec, dataSource=source, dataSourceRef=reference)


DEFAULTS: Mapping[GroupKind, Default] = {
    ("", "PersistentVolume"): default_persistent_volume,
    ("", "PersistentVolumeClaim"): default_claim,
}
