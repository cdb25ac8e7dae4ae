"""Parts of objects that are written by themselves, besides their status: approvals, ephemeral containers, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from steersman.api.generated.core_v1 import Container, Pod
from steersman.server import problems, verbs
from steersman.server.apply import verb as applying
from steersman.server.certificates import approved
from steersman.server.core import Server
from steersman.server.resources import Resource
from steersman.server.strategy import Merge, Moment


def write(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    subresource: str,
    make: Callable[[Any], Any],
    *,
    user: str = "",
    manager: str = "",
) -> Any:
    """Replace a part of an object by what ``make`` makes of the object."""

    def made(old: Any) -> Any:
        new = make(old)
        if new.metadata.name != name:
            raise problems.bad_request(
                f"the name of the object ({new.metadata.name}) does not match the name on the URL ({name})"
            )
        return new

    merge = PARTS[resource.id, subresource]
    return verbs.change(
        server,
        resource,
        namespace,
        name,
        made,
        merge=merge,
        subresource=subresource,
        user=user,
        manager=manager,
    )


def apply(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    subresource: str,
    patch: Mapping[str, Any],
    *,
    manager: str,
    force: bool = False,
    user: str = "",
) -> Any:
    """Apply a document to a part of an object."""
    return applying.apply(
        server,
        resource,
        namespace,
        name,
        patch,
        manager=manager,
        force=force,
        subresource=subresource,
        user=user,
        merge=PARTS[resource.id, subresource],
    ).obj


def joined(new: Pod, old: Pod, moment: Moment) -> Pod:
    """Ephemeral containers, and nothing else."""
    return replace(old, spec=replace(old.spec, ephemeralContainers=new.spec.ephemeralContainers))


def resized(new: Pod, old: Pod, moment: Moment) -> Pod:
    """What containers ask for, and nothing else."""
    spec = replace(
        old.spec,
        containers=_sized(new.spec.containers, old.spec.containers),
        initContainers=_sized(new.spec.initContainers, old.spec.initContainers),
        resources=new.spec.resources,
    )
    return replace(old, spec=spec)


def _sized(new: tuple[Container, ...], old: tuple[Container, ...]) -> tuple[Container, ...]:
    """Containers with other sizes; other containers are left for the rules to refuse."""
    if [each.name for each in new] != [each.name for each in old]:
        return new
    return tuple(
        replace(was, resources=now.resources, resizePolicy=now.resizePolicy)
        for now, was in zip(new, old, strict=True)
    )


PARTS: Mapping[tuple[str, str], Merge] = {
    ("certificatesigningrequests.certificates.k8s.io", "approval"): approved,
    ("pods", "ephemeralcontainers"): joined,
    ("pods", "resize"): resized,
}
"""By resource and subresource."""
