"""The scale of custom resources: the definition says where in them it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import CustomResourceSubresourceScale
from steersman.api.generated.autoscaling_v1 import Scale, ScaleSpec, ScaleStatus
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server import status_errors
from steersman.server.codec.convert import adopt, document
from steersman.server.crd.custom import Custom
from steersman.server.crd.paths import BadPath, split, value_at, with_value
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import Scaling
from steersman.server.rest import verbs
from steersman.server.server import Server

_UNSET = -(2**31)
"""What stands for a count that is not there, while it is changed."""


def scaling(said: CustomResourceSubresourceScale) -> Scaling:
    """What reads and sets the scale of objects, given where it is."""

    def scale(
        server: Server,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Scale], object] | None,
        user: str,
        manager: str = "",
    ) -> dict[str, Any]:
        if change is None:
            obj = server.get(resource, namespace, name)
            found = scale_of(said, obj)
            if found is None:
                raise status_errors.internal(
                    f'the spec replicas field "{said.specReplicasPath}" does not exist'
                )
        else:
            make = change
            obj = verbs.change(
                server,
                resource,
                namespace,
                name,
                lambda old: scaled(said, old, adopt(Scale, make(scale_of(said, old) or _unset(said, old)))),
                merge=resource.strategy.updated,
                subresource="scale",
                user=user,
                # Upstream loses track of who sets it.
                owners=lambda old, new: old.metadata.managedFields,
            )
            found = scale_of(said, obj)
        return document("autoscaling/v1", "Scale", found)

    return scale


def scale_of(said: CustomResourceSubresourceScale, obj: Custom) -> Scale | None:
    """How many replicas an object wants and has; None where it does not say how many it wants."""
    try:
        wanted = value_at(obj.content, split(said.specReplicasPath), int)
    except BadPath as error:
        raise status_errors.internal(str(error)) from None
    return None if wanted is None else _scale(said, obj, wanted)


def _unset(said: CustomResourceSubresourceScale, obj: Custom) -> Scale:
    return _scale(said, obj, _UNSET)


def _scale(said: CustomResourceSubresourceScale, obj: Custom, wanted: int) -> Scale:
    try:
        has = value_at(obj.content, split(said.statusReplicasPath), int) or 0
        selector = ""
        if said.labelSelectorPath:
            selector = value_at(obj.content, split(said.labelSelectorPath), str) or ""
    except BadPath as error:
        raise status_errors.internal(str(error)) from None
    meta = obj.metadata
    return Scale(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resourceVersion=meta.resourceVersion,
            creationTimestamp=meta.creationTimestamp,
        ),
        spec=ScaleSpec(replicas=wanted),
        status=ScaleStatus(replicas=has, selector=selector),
    )


def scaled(said: CustomResourceSubresourceScale, obj: Custom, wanted: Scale) -> Custom:
    """The object with the number of replicas it is wanted to have."""
    if wanted.spec.replicas == _UNSET:
        raise status_errors.bad_request(f'the spec replicas field "{said.specReplicasPath}" cannot be empty')
    try:
        content = with_value(obj.content, split(said.specReplicasPath), wanted.spec.replicas)
    except BadPath as error:
        raise status_errors.internal(str(error)) from None
    version = wanted.metadata.resourceVersion or obj.metadata.resourceVersion
    return replace(obj, content=content, metadata=replace(obj.metadata, resourceVersion=version))
