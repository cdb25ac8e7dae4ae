"""Interpretations of the calls of the cloud provider: with a timeout, and with every answer checked.

A provider is foreign code: it may hang, raise anything or return anything. Each of these becomes a `ProviderFailed` of the
one call, so that its round fails alone. A call that takes long lends its worker to other keys meanwhile.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, TypeVar, cast

from steersman.api.cloud import (
    CloudError,
    CloudProvider,
    Instances,
    LoadBalancers,
    NotSupported,
    ProviderFailed,
    Route,
    Routes,
)
from steersman.api.kinds.services import LoadBalancerIngress, LoadBalancerStatus
from steersman.api.scheme import Key
from steersman.intent.cloud import (
    CloudCall,
    CreateRoute,
    DeleteLoadBalancer,
    DeleteRoute,
    EnsureLoadBalancer,
    GetLoadBalancer,
    InstanceExists,
    InstanceShutDown,
    ListRoutes,
    UpdateLoadBalancer,
)
from steersman.runtime.action_table.interpretation import (
    Environment,
    Interpretation,
    SimulatedServer,
    interprets,
)
from steersman.runtime.action_table.text import shorten

C = TypeVar("C", bound=CloudCall[Any])

TIMEOUT = 300.0
"""Seconds until a call is cancelled. Some clouds take minutes to create a load balancer."""
LENDING = 5.0
"""Seconds after which the worker that waits for a call lends its place, so that other keys are not held up."""
WILLING = LoadBalancerStatus(ingress=(LoadBalancerIngress(ip="192.0.2.1"),))
"""The status of a load balancer in a row test that does not give one."""


class CloudInterpretation(Interpretation[C]):
    """The part that all calls share."""

    @abstractmethod
    async def call(self, provider: CloudProvider, action: C) -> Any:
        """Call the provider."""

    def check(self, answer: Any) -> bool:
        """Whether the provider returned a value of the right type."""
        return True

    async def perform(self, env: Environment, key: Key, action: C) -> Any:
        provider = env.cloud
        if provider is None:
            raise ProviderFailed("there is no cloud provider")
        what = f"cloud provider {provider.name}: {self.describe(action)}"
        call = asyncio.ensure_future(self.call(provider, action))
        try:
            await asyncio.wait((call,), timeout=LENDING)
            if not call.done():
                with env.lend_worker():
                    await asyncio.wait((call,), timeout=TIMEOUT - LENDING)
            if not call.done():
                raise ProviderFailed(f"{what}: no answer within {TIMEOUT:g} s")
        finally:
            call.cancel()
        if call.cancelled():
            raise ProviderFailed(f"{what}: the provider cancelled the call")
        error = call.exception()
        if isinstance(error, CloudError):
            raise error
        if error is not None:
            raise ProviderFailed(f"{what}: {type(error).__name__}: {shorten(str(error))}") from error
        answer = call.result()
        if not self.check(answer):
            raise ProviderFailed(f"{what}: the provider returned a {type(answer).__name__}")
        return answer


def _load_balancers(provider: CloudProvider) -> LoadBalancers:
    return _present(provider.load_balancers, "load balancers")


def _routes(provider: CloudProvider) -> Routes:
    return _present(provider.routes, "routes")


def _instances(provider: CloudProvider) -> Instances:
    return _present(provider.instances, "instances")


P = TypeVar("P")


def _present(part: P | None, what: str) -> P:
    if part is None:
        raise NotSupported(f"the cloud provider has no {what}")
    return part


# -- load balancers ---------------------------------------------------------------------------


@interprets(GetLoadBalancer)
class GetLoadBalancerInterpretation(CloudInterpretation[GetLoadBalancer]):
    verb = "read"

    async def call(self, provider: CloudProvider, action: GetLoadBalancer) -> Any:
        return await _load_balancers(provider).get(action.cluster, action.service)

    def check(self, answer: Any) -> bool:
        return answer is None or isinstance(answer, LoadBalancerStatus)

    def describe(self, action: GetLoadBalancer) -> str:
        return f"read load balancer of service {action.service.key}"


@interprets(EnsureLoadBalancer)
class EnsureLoadBalancerInterpretation(CloudInterpretation[EnsureLoadBalancer]):
    verb = "ensure"
    past = "ensured"

    async def call(self, provider: CloudProvider, action: EnsureLoadBalancer) -> Any:
        return await _load_balancers(provider).ensure(action.cluster, action.service, action.nodes)

    def check(self, answer: Any) -> bool:
        return isinstance(answer, LoadBalancerStatus)

    def describe(self, action: EnsureLoadBalancer) -> str:
        return f"ensure load balancer of service {action.service.key} with {len(action.nodes)} nodes"

    def simulate(self, server: SimulatedServer, action: EnsureLoadBalancer) -> LoadBalancerStatus:
        return WILLING


@interprets(UpdateLoadBalancer)
class UpdateLoadBalancerInterpretation(CloudInterpretation[UpdateLoadBalancer]):
    verb = "update"
    past = "updated"

    async def call(self, provider: CloudProvider, action: UpdateLoadBalancer) -> Any:
        await _load_balancers(provider).update(action.cluster, action.service, action.nodes)

    def describe(self, action: UpdateLoadBalancer) -> str:
        return f"update load balancer of service {action.service.key} to {len(action.nodes)} nodes"


@interprets(DeleteLoadBalancer)
class DeleteLoadBalancerInterpretation(CloudInterpretation[DeleteLoadBalancer]):
    verb = "delete"
    past = "deleted"

    async def call(self, provider: CloudProvider, action: DeleteLoadBalancer) -> Any:
        await _load_balancers(provider).ensure_deleted(action.cluster, action.service)

    def describe(self, action: DeleteLoadBalancer) -> str:
        return f"delete load balancer of service {action.service.key}"


# -- routes -----------------------------------------------------------------------------------


@interprets(ListRoutes)
class ListRoutesInterpretation(CloudInterpretation[ListRoutes]):
    verb = "list"

    async def call(self, provider: CloudProvider, action: ListRoutes) -> Any:
        listed = await _routes(provider).list(action.cluster)
        return tuple(listed) if isinstance(listed, list | tuple) else listed

    def check(self, answer: Any) -> bool:
        return isinstance(answer, tuple) and all(isinstance(each, Route) for each in cast("Any", answer))

    def describe(self, action: ListRoutes) -> str:
        return f"list routes of cluster {action.cluster}"

    def simulate(self, server: SimulatedServer, action: ListRoutes) -> tuple[Route, ...]:
        return ()


@interprets(CreateRoute)
class CreateRouteInterpretation(CloudInterpretation[CreateRoute]):
    verb = "create"
    past = "created"

    async def call(self, provider: CloudProvider, action: CreateRoute) -> Any:
        await _routes(provider).create(action.cluster, action.name_hint, action.route)

    def describe(self, action: CreateRoute) -> str:
        return f"create route {action.route.destination_cidr} to node {action.route.target_node}"


@interprets(DeleteRoute)
class DeleteRouteInterpretation(CloudInterpretation[DeleteRoute]):
    verb = "delete"
    past = "deleted"

    async def call(self, provider: CloudProvider, action: DeleteRoute) -> Any:
        await _routes(provider).delete(action.cluster, action.route)

    def describe(self, action: DeleteRoute) -> str:
        return f"delete route {action.route.name or action.route.destination_cidr}"


# -- instances --------------------------------------------------------------------------------


class InstanceInterpretation(CloudInterpretation[C]):
    """A question about an instance, with yes or no as its answer."""

    verb = "ask"

    def check(self, answer: Any) -> bool:
        # Only False deletes a node; None is a mistake of the provider.
        return isinstance(answer, bool)


@interprets(InstanceExists)
class InstanceExistsInterpretation(InstanceInterpretation[InstanceExists]):
    async def call(self, provider: CloudProvider, action: InstanceExists) -> Any:
        return await _instances(provider).exists(action.node)

    def describe(self, action: InstanceExists) -> str:
        return f"ask whether the instance of node {action.node.key} exists"

    def simulate(self, server: SimulatedServer, action: InstanceExists) -> bool:
        return True


@interprets(InstanceShutDown)
class InstanceShutDownInterpretation(InstanceInterpretation[InstanceShutDown]):
    async def call(self, provider: CloudProvider, action: InstanceShutDown) -> Any:
        return await _instances(provider).is_shut_down(action.node)

    def describe(self, action: InstanceShutDown) -> str:
        return f"ask whether the instance of node {action.node.key} is shut down"

    def simulate(self, server: SimulatedServer, action: InstanceShutDown) -> bool:
        return False
