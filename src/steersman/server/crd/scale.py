"""The scale of custom resources: their definition says at which paths it is."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import CustomResourceSubresourceScale
from steersman.api.generated.autoscaling_v1 import Scale, ScaleSpec, ScaleStatus
from steersman.server import status_errors
from steersman.server.crd.custom import CustomResource
from steersman.server.crd.paths import InvalidPath, split, value_at, with_value
from steersman.server.registry.strategy import ScaleAccess, scale_metadata

_UNSET = -(2**31)
"""Stands for replicas that are not set, while a patch is applied."""


def scale_access(paths: CustomResourceSubresourceScale) -> ScaleAccess:
    """Reads and writes the scale of objects at the paths that their definition names."""
    return ScaleAccess(
        lambda obj: scale_of(paths, obj),
        lambda obj: _scale(paths, obj, _UNSET),
        lambda obj, scale: scaled(paths, obj, scale),
        paths.specReplicasPath,
    )


def scale_of(paths: CustomResourceSubresourceScale, obj: CustomResource) -> Scale | None:
    """The scale of an object; None where it does not set its replicas."""
    try:
        wanted = value_at(obj.content, split(paths.specReplicasPath), int)
    except InvalidPath as error:
        raise status_errors.internal(str(error)) from None
    return None if wanted is None else _scale(paths, obj, wanted)


def _scale(paths: CustomResourceSubresourceScale, obj: CustomResource, wanted: int) -> Scale:
    try:
        has = value_at(obj.content, split(paths.statusReplicasPath), int) or 0
        selector = ""
        if paths.labelSelectorPath:
            selector = value_at(obj.content, split(paths.labelSelectorPath), str) or ""
    except InvalidPath as error:
        raise status_errors.internal(str(error)) from None
    return Scale(
        metadata=scale_metadata(obj.metadata),
        spec=ScaleSpec(replicas=wanted),
        status=ScaleStatus(replicas=has, selector=selector),
    )


def scaled(paths: CustomResourceSubresourceScale, obj: CustomResource, wanted: Scale) -> CustomResource:
    """The object with the replicas of a scale."""
    if wanted.spec.replicas == _UNSET:
        raise status_errors.bad_request(f'the spec replicas field "{paths.specReplicasPath}" cannot be empty')
    try:
        content = with_value(obj.content, split(paths.specReplicasPath), wanted.spec.replicas)
    except InvalidPath as error:
        raise status_errors.internal(str(error)) from None
    version = wanted.metadata.resourceVersion or obj.metadata.resourceVersion
    return replace(obj, content=content, metadata=replace(obj.metadata, resourceVersion=version))
