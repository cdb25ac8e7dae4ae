"""Defaults of volumes: those of pods, persistent ones, and claims of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.server.defaulting.missing_fields import amount, amounts, each, maybe, put, unset, zero

_READABLE = 0o644


_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])"
_reference = re.compile(
    rf"(?:{_DOMAIN}(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?P<tag>:[\w][\w.-]{0,127})?(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
).fullmatch


@lru_cache(maxsize=1024)
def pull_policy(image: str) -> str:
    """Always for ``latest``, said or implied; otherwise once is enough, as for what nobody can read."""
    found = _reference(image)
    if found is None:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else ":latest")
    return "Always" if tag == ":latest" else "IfNotPresent"


def volume(given: v1.Volume) -> v1.Volume:
    """A volume of a pod; one without a source begins empty."""
    sources = [name for name in _SOURCES if getattr(given, name) is not None]
    if not sources:
        return put(given, emptyDir=v1.EmptyDirVolumeSource())
    changes = {name: _FILLED[name](getattr(given, name)) for name in sources if name in _FILLED}
    return put(given, **changes) if changes else given


_SOURCES = tuple(name for name in v1.Volume.__struct_fields__ if name != "name")


def _file_modes(source: Any) -> Any:
    return unset(source, defaultMode=_READABLE)


def host_path(source: v1.HostPathVolumeSource) -> v1.HostPathVolumeSource:
    return unset(source, type="")


def _empty_dir(source: v1.EmptyDirVolumeSource) -> v1.EmptyDirVolumeSource:
    return put(source, sizeLimit=maybe(source.sizeLimit, amount))


def _image(source: v1.ImageVolumeSource) -> v1.ImageVolumeSource:
    return zero(source, pullPolicy=pull_policy(source.reference))


def _downward(source: v1.DownwardAPIVolumeSource) -> v1.DownwardAPIVolumeSource:
    return put(unset(source, defaultMode=_READABLE), items=each(source.items, _file))


def _file(file: v1.DownwardAPIVolumeFile) -> v1.DownwardAPIVolumeFile:
    return put(
        file,
        fieldRef=maybe(file.fieldRef, lambda ref: zero(ref, apiVersion="v1")),
        resourceFieldRef=maybe(file.resourceFieldRef, lambda ref: put(ref, divisor=amount(ref.divisor))),
    )


def _projected(source: v1.ProjectedVolumeSource) -> v1.ProjectedVolumeSource:
    return put(
        unset(source, defaultMode=_READABLE),
        sources=maybe(source.sources, lambda sources: each(sources, _projection)),
    )


def _projection(source: v1.VolumeProjection) -> v1.VolumeProjection:
    return put(
        source,
        serviceAccountToken=maybe(
            source.serviceAccountToken, lambda token: unset(token, expirationSeconds=3600)
        ),
        downwardAPI=maybe(source.downwardAPI, lambda api: put(api, items=each(api.items, _file))),
        # Not yet for everybody, so they are dropped.
        clusterTrustBundle=None,
        podCertificate=None,
    )


def _ephemeral(source: v1.EphemeralVolumeSource) -> v1.EphemeralVolumeSource:
    claim = source.volumeClaimTemplate
    return (
        source if claim is None else put(source, volumeClaimTemplate=put(claim, spec=claim_spec(claim.spec)))
    )


def _iscsi(source: Any) -> Any:
    return zero(source, iscsiInterface="default")


def _rbd(source: Any) -> Any:
    return zero(source, pool="rbd", user="admin", keyring="/etc/ceph/keyring")


def _azure_disk(source: v1.AzureDiskVolumeSource) -> v1.AzureDiskVolumeSource:
    return unset(source, cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared")


def _scale_io(source: Any) -> Any:
    return zero(source, storageMode="ThinProvisioned", fsType="xfs")


_SHARED: dict[str, Any] = {
    "azureDisk": _azure_disk,
    "hostPath": host_path,
    "iscsi": _iscsi,
    "rbd": _rbd,
    "scaleIO": _scale_io,
}
_FILLED: dict[str, Any] = {
    **_SHARED,
    "configMap": _file_modes,
    "downwardAPI": _downward,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "image": _image,
    "projected": _projected,
    "secret": _file_modes,
}


# -- persistent volumes and claims ------------------------------------------------------------


def persistent_volume(obj: v1.PersistentVolume) -> v1.PersistentVolume:
    spec = zero(obj.spec, persistentVolumeReclaimPolicy="Retain")
    spec = unset(spec, volumeMode="Filesystem")
    spec = put(spec, capacity=amounts(spec.capacity))
    for name, filled in _SHARED.items():
        source: Any = getattr(spec, name)
        if source is not None:
            spec = put(spec, **{name: filled(source)})
    return put(obj, spec=spec, status=zero(obj.status, phase="Pending"))


def claim(obj: v1.PersistentVolumeClaim) -> v1.PersistentVolumeClaim:
    return put(obj, spec=_content(claim_spec(obj.spec)), status=zero(obj.status, phase="Pending"))


def claim_spec(spec: v1.PersistentVolumeClaimSpec) -> v1.PersistentVolumeClaimSpec:
    """What claims and templates of them ask for."""
    resources = spec.resources
    resources = put(resources, limits=amounts(resources.limits), requests=amounts(resources.requests))
    return put(unset(spec, volumeMode="Filesystem"), resources=resources)


_SNAPSHOTS = "snapshot.storage.k8s.io"


def _content(spec: v1.PersistentVolumeClaimSpec) -> v1.PersistentVolumeClaimSpec:
    """Where a claim's content comes from, said in both ways; in the older only claims and snapshots could be."""
    source, reference = spec.dataSource, spec.dataSourceRef
    if reference is not None and reference.namespace:
        # What is in other namespaces cannot be referred to yet.
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
