"""The pods of Services: which pods are endpoints, at which ports, and which Services a changed pod concerns.

Used by the controllers that write Endpoints and EndpointSlices; upstream's k8s.io/endpointslice/util.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from steersman.api.kinds import Container, InitContainer, Pod
from steersman.api.kinds.services import SERVICES, Service, ServicePort
from steersman.api.pods import is_ready, is_terminal
from steersman.api.scheme import Key
from steersman.intent.controller import Cache, Caches, Change, Index

BY_SELECTOR = "by_selector"


def by_selector(service: Service) -> Iterable[Hashable]:
    """Indexes a Service by its namespace and one label of its selector, which each of its pods must have."""
    selector = service.spec.selector
    if not selector:
        return ()  # A Service without a selector selects no pods.
    key = min(selector)
    return ((service.metadata.namespace, key, selector[key]),)


SELECTING: Mapping[str, Index] = {BY_SELECTOR: by_selector}
"""The indexes for a watch of Services."""


def selects(service: Service, labels: Mapping[str, str]) -> bool:
    """Whether a Service selects pods with these labels. Without a selector, it selects none."""
    selector = service.spec.selector
    if not selector:
        return False
    return all(labels.get(key) == value for key, value in selector.items())


def selected_pods(pods: Cache[Pod], service: Service) -> Iterator[Pod]:
    """The pods that a Service selects, in the stable order of the cache."""
    wanted = tuple(service.spec.selector.items())
    if not wanted:
        return
    for pod in pods.list(service.metadata.namespace):
        labels = pod.metadata.labels
        for key, value in wanted:
            if labels.get(key) != value:
                break
        else:
            yield pod


def services_of(services: Cache[Service], namespace: str, labels: Mapping[str, str]) -> dict[Key, None]:
    """The keys of the Services that select pods with these labels. The watch of Services needs `SELECTING`."""
    found: dict[Key, None] = {}
    for key, value in labels.items():
        for service in services.by(BY_SELECTOR, (namespace, key, value)):
            if selects(service, labels):
                found[service.key] = None
    return found


def enqueue_services(caches: Caches, change: Change[Pod]) -> Iterable[Key]:
    """Enqueues the Services whose endpoints may change with a pod; a function for `Watch.to`."""
    services, pod, old = caches[SERVICES], change.obj, change.old
    namespace = pod.metadata.namespace
    if old is None or change.new is None:
        return services_of(services, namespace, pod.metadata.labels)
    pod_changed, membership_changed = endpoint_changes(old, pod)
    if not pod_changed and not membership_changed:
        return ()
    after = services_of(services, namespace, pod.metadata.labels)
    if not membership_changed:
        return after
    return affected(services_of(services, namespace, old.metadata.labels), after, pod_changed=pod_changed)


def affected(before: Iterable[Key], after: Iterable[Key], *, pod_changed: bool) -> list[Key]:
    """The Services to update when a pod's labels change: all of them where the pod itself changed as well,
    otherwise those that it has joined or left."""
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    if pod_changed:
        return list(old | new)
    return [key for key in old | new if (key in old) != (key in new)]


def endpoint_changes(old: Pod, new: Pod) -> tuple[bool, bool]:
    """Whether a pod's endpoints may have changed, and whether it may have joined or left Services."""
    membership_changed = (
        new.metadata.labels != old.metadata.labels
        or new.spec.hostname != old.spec.hostname
        or new.spec.subdomain != old.spec.subdomain
    )
    # The node is set before the pod has an address, and what else an endpoint names never changes.
    # differs: upstream misses the end of a pod that was never ready, until its Service is next looked at.
    pod_changed = (
        new.metadata.deletionTimestamp != old.metadata.deletionTimestamp
        or is_ready(new) != is_ready(old)
        or is_terminal(new) != is_terminal(old)
        or new.status.podIPs != old.status.podIPs
    )
    return pod_changed, membership_changed


def should_be_in_endpoints(pod: Pod, *, include_terminating: bool) -> bool:
    """Whether a pod is an endpoint: it has an address, and has neither succeeded nor failed."""
    if is_terminal(pod) or not (pod.status.podIP or pod.status.podIPs):
        return False
    return include_terminating or pod.metadata.deletionTimestamp is None


def should_set_hostname(pod: Pod, service: Service) -> bool:
    """Whether the endpoint of a pod has a hostname: its subdomain is the Service."""
    return (
        bool(pod.spec.hostname)
        and pod.spec.subdomain == service.metadata.name
        and pod.metadata.namespace == service.metadata.namespace
    )


def find_port(pod: Pod, port: ServicePort) -> int | None:
    """The number of a Service's target port on a pod; None where no container has a port of that name.

    A name is looked up in the containers, then in the sidecars, with the protocol of the Service's port.
    """
    target = port.targetPort
    if isinstance(target, int):
        return target
    sidecars = (container for container in pod.spec.initContainers if container.restartPolicy == "Always")
    for containers in (pod.spec.containers, sidecars):
        found = _named_port(containers, target, port.protocol)
        if found is not None:
            return found
    return None


def _named_port(containers: Iterable[Container | InitContainer], name: str, protocol: str) -> int | None:
    for container in containers:
        for port in container.ports:
            if port.name == name and port.protocol == protocol:
                return port.containerPort
    return None
