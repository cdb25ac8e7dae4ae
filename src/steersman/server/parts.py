"""Parts of objects that are written by themselves, besides their status: approvals, ephemeral containers, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from steersman.api.generated.certificates_v1 import CertificateSigningRequest
from steersman.api.generated.core_v1 import Pod
from steersman.server import problems, verbs
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


def approved(
    new: CertificateSigningRequest, old: CertificateSigningRequest, moment: Moment
) -> CertificateSigningRequest:
    """Only the conditions; who does not say since when they hold means now."""
    since = {(each.type, each.status): each.lastTransitionTime for each in old.status.conditions}
    conditions = tuple(
        replace(
            each,
            lastUpdateTime=each.lastUpdateTime or moment.now,
            lastTransitionTime=each.lastTransitionTime or since.get((each.type, each.status)) or moment.now,
        )
        for each in new.status.conditions
    )
    return replace(new, spec=old.spec, status=replace(old.status, conditions=conditions))


def joined(new: Pod, old: Pod, moment: Moment) -> Pod:
    """Ephemeral containers come, and never go."""
    wanted = new.spec.ephemeralContainers
    known = {each.name: each for each in old.spec.ephemeralContainers}
    kept = {each.name: each for each in wanted if each.name in known}
    if kept != known:
        wrong = [
            problems.banned("spec.ephemeralContainers", "existing ephemeral containers may not be changed")
        ]
        raise problems.invalid("", "Pod", old.metadata.name, wrong)
    return replace(old, spec=replace(old.spec, ephemeralContainers=wanted))


def resized(new: Pod, old: Pod, moment: Moment) -> Pod:
    """What containers ask for, and nothing else."""
    sizes = {each.name: each.resources for each in new.spec.containers}
    containers = tuple(
        replace(each, resources=sizes[each.name]) if each.name in sizes else each
        for each in old.spec.containers
    )
    return replace(old, spec=replace(old.spec, containers=containers, resources=new.spec.resources))


PARTS: Mapping[tuple[str, str], Merge] = {
    ("certificatesigningrequests.certificates.k8s.io", "approval"): approved,
    ("pods", "ephemeralcontainers"): joined,
    ("pods", "resize"): resized,
}
"""By resource and subresource."""
