"""Defaults of pods and pod templates.

Some defaults apply to pods only, not to templates. Pods of one template share one spec object, so the result
for a spec is cached by its identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.kinds import EMPTY
from steersman.api.quantity import Quantity
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_quantities,
    default_if_none,
    default_if_zero,
    map_items,
    map_optional,
    put,
)
from steersman.server.defaulting.volumes import default_volume, image_pull_policy

_spec_cache: BoundedCache[int, tuple[v1.PodSpec, v1.PodSpec]] = BoundedCache(256)
"""By the id of a spec: that spec (which keeps the id from being reused), and the same with its defaults."""

_EMPTY_SECURITY_CONTEXT = v1.PodSecurityContext()

T = TypeVar("T")
C = TypeVar("C", v1.Container, v1.EphemeralContainer)


def default_pod(obj: v1.Pod) -> v1.Pod:
    """Sets the defaults of a template's spec and those of pods only."""
    given = obj.spec
    known = _spec_cache.get(id(given))
    if known is None:
        spec = _default_pod_only(default_pod_spec(given))
        known = (given, spec)
        _spec_cache.put(id(given), known)
    return obj if known[1] is given else replace(obj, spec=known[1])


def default_pod_template(obj: v1.PodTemplate) -> v1.PodTemplate:
    return put(obj, template=default_pod_template_spec(obj.template))


def default_pod_template_spec(obj: v1.PodTemplateSpec) -> v1.PodTemplateSpec:
    """Sets the defaults of a workload's pod template."""
    return put(obj, spec=default_pod_spec(obj.spec))


def default_pod_spec(spec: v1.PodSpec) -> v1.PodSpec:
    """Sets the defaults that pods and templates share."""
    changes: dict[str, Any] = {}
    if not spec.dnsPolicy:
        changes["dnsPolicy"] = "ClusterFirst"
    if not spec.restartPolicy:
        changes["restartPolicy"] = "Always"
    if not spec.schedulerName:
        changes["schedulerName"] = "default-scheduler"
    if spec.securityContext is None:
        changes["securityContext"] = _EMPTY_SECURITY_CONTEXT
    if spec.terminationGracePeriodSeconds is None:
        changes["terminationGracePeriodSeconds"] = 30
    if not spec.nodeSelector:
        # An empty map and an absent one are the same.
        _set_if_changed(changes, "nodeSelector", spec.nodeSelector, EMPTY)
    if spec.containers:
        _set_if_changed(
            changes, "containers", spec.containers, map_items(spec.containers, _default_container)
        )
    if spec.initContainers:
        filled = map_items(spec.initContainers, _default_container)
        _set_if_changed(changes, "initContainers", spec.initContainers, filled)
    if spec.ephemeralContainers:
        ephemeral = map_items(spec.ephemeralContainers, _default_container)
        _set_if_changed(changes, "ephemeralContainers", spec.ephemeralContainers, ephemeral)
    if spec.volumes:
        _set_if_changed(changes, "volumes", spec.volumes, map_items(spec.volumes, default_volume))
    if spec.overhead:
        _set_if_changed(changes, "overhead", spec.overhead, canonical_quantities(spec.overhead))
    if spec.resources is not None:
        _set_if_changed(changes, "resources", spec.resources, canonical_requirements(spec.resources))
    if spec.serviceAccountName != spec.serviceAccount:
        # serviceAccount is the deprecated alias of serviceAccountName.
        account = spec.serviceAccountName or spec.serviceAccount
        changes["serviceAccountName"] = changes["serviceAccount"] = account
    return replace(spec, **changes) if changes else spec


def _default_pod_only(spec: v1.PodSpec) -> v1.PodSpec:
    if spec.enableServiceLinks is None:
        spec = replace(spec, enableServiceLinks=True)
    if (spec.terminationGracePeriodSeconds or 0) < 0:
        # Upstream does this for pods, not for templates.
        spec = replace(spec, terminationGracePeriodSeconds=1)
    containers = _default_pod_containers(spec.containers, spec)
    init_containers = _default_pod_containers(spec.initContainers, spec)
    if containers is not spec.containers or init_containers is not spec.initContainers:
        spec = replace(spec, containers=containers, initContainers=init_containers)
    return spec if spec.resources is None else default_pod_resources(spec, spec.resources)


def _default_pod_containers(
    containers: tuple[v1.Container, ...], spec: v1.PodSpec
) -> tuple[v1.Container, ...]:
    filled = map_items(containers, _default_requests)
    return map_items(filled, _default_host_ports) if spec.hostNetwork else filled


def _default_requests(container: v1.Container) -> v1.Container:
    """Requests default to the limits."""
    resources = container.resources
    if not resources.limits:
        return container
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    if not missing:
        return container
    return put(container, resources=put(resources, requests={**resources.requests, **missing}))


def _default_host_ports(container: v1.Container) -> v1.Container:
    return put(
        container,
        ports=map_items(container.ports, lambda port: default_if_zero(port, hostPort=port.containerPort)),
    )


def canonical_requirements(resources: v1.ResourceRequirements) -> v1.ResourceRequirements:
    """Requests and limits with canonical quantities."""
    limits, requests = canonical_quantities(resources.limits), canonical_quantities(resources.requests)
    if limits is resources.limits and requests is resources.requests:
        return resources
    return replace(resources, limits=limits, requests=requests)


def _default_container(container: C) -> C:
    changes: dict[str, Any] = {}
    if not container.imagePullPolicy:
        changes["imagePullPolicy"] = image_pull_policy(container.image)
    if not container.terminationMessagePath:
        changes["terminationMessagePath"] = "/dev/termination-log"
    if not container.terminationMessagePolicy:
        changes["terminationMessagePolicy"] = "File"
    if container.ports:
        _set_if_changed(
            changes, "ports", container.ports, map_items(container.ports, _default_container_port)
        )
    if container.env:
        _set_if_changed(changes, "env", container.env, map_items(container.env, _default_env_var))
    resources = container.resources
    if resources.limits or resources.requests:
        _set_if_changed(changes, "resources", container.resources, canonical_requirements(resources))
    if container.livenessProbe is not None:
        probe = container.livenessProbe
        _set_if_changed(changes, "livenessProbe", probe, _default_probe(probe))
    if container.readinessProbe is not None:
        probe = container.readinessProbe
        _set_if_changed(changes, "readinessProbe", probe, _default_probe(probe))
    if container.startupProbe is not None:
        probe = container.startupProbe
        _set_if_changed(changes, "startupProbe", probe, _default_probe(probe))
    if container.lifecycle is not None:
        _set_if_changed(changes, "lifecycle", container.lifecycle, _default_lifecycle(container.lifecycle))
    return replace(container, **changes) if changes else container


def _set_if_changed(changes: dict[str, Any], name: str, old: T, new: T) -> None:
    """Records a field whose value is another object than before."""
    if new is not old:
        changes[name] = new


def _default_container_port(port: v1.ContainerPort) -> v1.ContainerPort:
    return port if port.protocol else replace(port, protocol="TCP")


def _default_env_var(variable: v1.EnvVar) -> v1.EnvVar:
    source = variable.valueFrom
    if source is None:
        return variable
    source = put(
        source,
        fieldRef=map_optional(source.fieldRef, lambda ref: default_if_zero(ref, apiVersion="v1")),
        fileKeyRef=map_optional(source.fileKeyRef, lambda ref: default_if_none(ref, optional=False)),
        resourceFieldRef=map_optional(source.resourceFieldRef, _canonical_divisor),
    )
    return put(variable, valueFrom=source)


def _canonical_divisor(ref: v1.ResourceFieldSelector) -> v1.ResourceFieldSelector:
    return put(ref, divisor=canonical_quantities({"divisor": ref.divisor})["divisor"])


def _default_probe(probe: v1.Probe) -> v1.Probe:
    probe = default_if_zero(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    grpc = map_optional(probe.grpc, lambda action: default_if_none(action, service=""))
    return put(probe, httpGet=map_optional(probe.httpGet, _default_http_get), grpc=grpc)


def _default_http_get(action: v1.HTTPGetAction) -> v1.HTTPGetAction:
    return default_if_zero(action, path="/", scheme="HTTP")


def _default_lifecycle(lifecycle: v1.Lifecycle) -> v1.Lifecycle:
    # stopSignal belongs to a feature gate that is off.
    return put(
        lifecycle,
        stopSignal=None,
        postStart=map_optional(lifecycle.postStart, _default_lifecycle_handler),
        preStop=map_optional(lifecycle.preStop, _default_lifecycle_handler),
    )


def _default_lifecycle_handler(handler: v1.LifecycleHandler) -> v1.LifecycleHandler:
    return put(handler, httpGet=map_optional(handler.httpGet, _default_http_get))


# -- resources of a pod as a whole ------------------------------------------------------------

ResourceTotals: TypeAlias = dict[str, Quantity]

_HUGE_PAGES = "hugepages-"


def default_pod_resources(spec: v1.PodSpec, resources: v1.ResourceRequirements) -> v1.PodSpec:
    """Completes pod-level requests and limits from those of the containers."""
    limits, requests = dict(resources.limits), dict(resources.requests)
    if limits or requests:
        for name, total in aggregate_resources(spec, lambda given: given.limits).items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, str(total))
    if limits:
        for name, total in aggregate_resources(spec, lambda given: given.requests).items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(total))
        for name, limit in limits.items():
            if name in ("cpu", "memory") or name.startswith(_HUGE_PAGES):
                requests.setdefault(name, limit)
    if limits == resources.limits and requests == resources.requests:
        return spec
    return put(spec, resources=put(resources, limits=limits, requests=requests))


def aggregate_resources(
    spec: v1.PodSpec, of: Callable[[v1.ResourceRequirements], Mapping[str, Amount]]
) -> ResourceTotals:
    """The most a pod's containers use at a time: sidecars keep running, other init containers run one by one."""
    total: ResourceTotals = {}
    for container in spec.containers:
        _add_quantities(total, of(container.resources))
    most: ResourceTotals = {}
    sidecars: ResourceTotals = {}
    for container in spec.initContainers:
        given = of(container.resources)
        if container.restartPolicy == "Always":
            _add_quantities(total, given)
            _add_quantities(sidecars, given)
            now = dict(sidecars)
        else:
            now = dict(sidecars)
            _add_quantities(now, given)
        _raise_to(most, now)
    _raise_to(total, most)
    return total


def _add_quantities(total: ResourceTotals, more: Mapping[str, Amount]) -> None:
    for name, amount in more.items():
        exact = Quantity.parse(amount)
        total[name] = total[name] + exact if name in total else exact


def _raise_to(least: ResourceTotals, to: ResourceTotals) -> None:
    for name, amount in to.items():
        if name not in least or amount > least[name]:
            least[name] = amount


DEFAULTS: Mapping[GroupKind, Default] = {
    ("", "Pod"): default_pod,
    ("", "PodTemplate"): default_pod_template,
}
