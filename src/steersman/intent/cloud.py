"""Actions on the cloud provider: what the cloud controllers may ask for.

Each raises a `CloudError` when the call fails, takes too long or returns a wrong value. `CloudWrite`s are fenced by
leadership, as writes to the API server are.
"""

from __future__ import annotations

from typing import TypeVar

from steersman.api.cloud import Route
from steersman.api.kinds.nodes import Node
from steersman.api.kinds.services import LoadBalancerStatus, Service
from steersman.intent.actions import Action

T = TypeVar("T")


class CloudCall(Action[T], frozen=True):
    """A call of the cloud provider."""


class CloudWrite(CloudCall[T], frozen=True):
    """A call that changes the cloud."""


class GetLoadBalancer(CloudCall[LoadBalancerStatus | None], frozen=True):
    """Reads the status of a Service's load balancer; None if there is none."""

    cluster: str
    service: Service


class EnsureLoadBalancer(CloudWrite[LoadBalancerStatus], frozen=True):
    """Creates or updates the load balancer of a Service; answers with its status."""

    cluster: str
    service: Service
    nodes: tuple[Node, ...]


class UpdateLoadBalancer(CloudWrite[None], frozen=True):
    """Changes the nodes behind a load balancer."""

    cluster: str
    service: Service
    nodes: tuple[Node, ...]


class DeleteLoadBalancer(CloudWrite[None], frozen=True):
    """Deletes the load balancer of a Service, if there is one."""

    cluster: str
    service: Service


class ListRoutes(CloudCall[tuple[Route, ...]], frozen=True):
    """Lists the routes of the cluster."""

    cluster: str


class CreateRoute(CloudWrite[None], frozen=True):
    """Creates a route."""

    cluster: str
    name_hint: str
    route: Route


class DeleteRoute(CloudWrite[None], frozen=True):
    """Deletes a route."""

    cluster: str
    route: Route


class InstanceExists(CloudCall[bool], frozen=True):
    """Asks whether the instance of a node exists."""

    node: Node


class InstanceShutDown(CloudCall[bool], frozen=True):
    """Asks whether the instance of a node is shut down."""

    node: Node
