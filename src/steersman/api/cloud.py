"""The cloud provider: the protocol between the cloud controllers and the cloud that the cluster runs in.

A provider offers up to three parts: load balancers for Services, routes to the pods of nodes, and the instances behind
nodes. Its methods are coroutines and must not block the event loop; an SDK that blocks belongs in `asyncio.to_thread`.
They are called by actions (`steersman.intent.cloud`), with a timeout, and may be repeated: each must lead to the same end
however often it is called. A provider raises `CloudError` or one of its subclasses::

    CloudError                  the call failed; the message appears in events
    ├── RetryLater              not ready yet: to be called again after a given time
    ├── ImplementedElsewhere    another controller does this
    ├── NotSupported            the provider cannot tell
    └── ProviderFailed          raised for the provider: no answer in time, an unexpected exception, a wrong answer
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds.nodes import Node, NodeAddress
from steersman.api.kinds.services import LoadBalancerStatus, Service

CloudPart: TypeAlias = Literal["load_balancers", "routes", "instances"]
"""A part of a cloud provider that a controller needs."""


class CloudError(ApiError):
    """A call of the cloud provider that failed."""


class RetryLater(CloudError):
    """The call is to be repeated after ``retry_after`` seconds, instead of with back-off: a balancer is still starting."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.seconds = retry_after


class ImplementedElsewhere(CloudError):
    """Load balancers are managed by another controller, except for their deletion."""


class NotSupported(CloudError):
    """The provider does not implement this call."""


class ProviderFailed(CloudError):
    """The provider gave no valid answer: it took too long, raised an unexpected exception or returned a wrong value."""


class Route(msgspec.Struct, frozen=True):
    """A route of the cloud's network to the pods of a node."""

    destination_cidr: str
    target_node: str = ""
    """The name of the node; empty if the provider does not know it."""
    name: str = ""
    """The provider's name; ignored on creation."""
    target_node_addresses: tuple[NodeAddress, ...] = ()
    enable_node_addresses: bool = False
    """Whether ``target_node_addresses`` are known, so that a route to other addresses is replaced."""
    blackhole: bool = False
    """Whether the target is gone. Such a route is deleted if it lies in the cluster's CIDR."""


class LoadBalancers(Protocol):
    """The load balancers of a cloud. Services and nodes are views, which are frozen."""

    async def get(self, cluster: str, service: Service) -> LoadBalancerStatus | None:
        """The status of a Service's load balancer; None if there is none."""
        ...

    async def ensure(self, cluster: str, service: Service, nodes: Sequence[Node]) -> LoadBalancerStatus:
        """Create or update the load balancer of a Service, and return its status."""
        ...

    async def update(self, cluster: str, service: Service, nodes: Sequence[Node]) -> None:
        """Change the nodes behind a load balancer."""
        ...

    async def ensure_deleted(self, cluster: str, service: Service) -> None:
        """Delete the load balancer and all that belongs to it; succeeds if there is none."""
        ...


class Routes(Protocol):
    """The routes of a cloud's network."""

    async def list(self, cluster: str) -> Sequence[Route]:
        """All routes of the cluster."""
        ...

    async def create(self, cluster: str, name_hint: str, route: Route) -> None: ...

    async def delete(self, cluster: str, route: Route) -> None:
        """Delete a route that `list` returned."""
        ...


class Instances(Protocol):
    """The machines behind nodes, found by the node's providerID or name."""

    async def exists(self, node: Node) -> bool:
        """Whether the instance exists, even if it is stopped. The node is deleted on False: raise when in doubt."""
        ...

    async def is_shut_down(self, node: Node) -> bool: ...


class ClusterObjects(Protocol):
    """The cached objects of the cluster, for a provider that keeps its own state in them."""

    def services(self) -> Iterable[Service]: ...

    def nodes(self) -> Iterable[Node]: ...


@runtime_checkable
class CloudProvider(Protocol):
    """A cloud. A part that it lacks is None, and the controller that needs the part does not run."""

    @property
    def name(self) -> str: ...

    @property
    def load_balancers(self) -> LoadBalancers | None: ...

    @property
    def routes(self) -> Routes | None: ...

    @property
    def instances(self) -> Instances | None: ...

    def initialize(self, cluster: ClusterObjects) -> None:
        """Called once before any other method, when the caches are synced."""
        ...


def offers(provider: CloudProvider | None, part: CloudPart) -> bool:
    """Whether there is a provider with this part."""
    if provider is None:
        return False
    match part:
        case "load_balancers":
            return provider.load_balancers is not None
        case "routes":
            return provider.routes is not None
        case "instances":
            return provider.instances is not None
