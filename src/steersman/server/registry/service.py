"""Services: the cluster address and the list of cluster addresses say the same."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.core_v1 import Service, ServiceStatus
from steersman.server.registry.strategy import WriteContext


def created(obj: Service, context: WriteContext) -> Service:
    return replace(_listed(obj), status=ServiceStatus())


def updated(new: Service, old: Service, context: WriteContext) -> Service:
    return replace(_listed(new), status=old.status)


def _listed(obj: Service) -> Service:
    """Clients from before there were several addresses know only the first; nobody owns what follows from it."""
    spec = obj.spec
    if not spec.clusterIP or spec.clusterIPs:
        return obj
    return replace(obj, spec=replace(spec, clusterIPs=(spec.clusterIP,)))
