"""Defaults of pods and of the templates they are made from.

A template and a pod are filled differently: some things only show once a pod is made of the template.
Pods of one template share one spec: what was made of a spec is remembered as long as it is in use.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.api.kinds import EMPTY
from steersman.server.defaulting.missing_fields import amounts, each, maybe, put, unset, zero
from steersman.server.defaulting.pod_resources import pod_level
from steersman.server.defaulting.volumes import pull_policy, volume

_defaulted: BoundedCache[int, tuple[v1.PodSpec, v1.PodSpec]] = BoundedCache(256)
"""By the id of a spec: that spec, and the same with its defaults."""

_NO_CONTEXT = v1.PodSecurityContext()
_MEMBERS = ("containers", "initContainers", "ephemeralContainers")


def pod(obj: v1.Pod) -> v1.Pod:
    """A pod: its spec like any template's, and what only pods have."""
    given = obj.spec
    known = _defaulted.get(id(given))
    if known is None:
        spec = _pod_only(pod_spec(given))
        known = (given, spec)
        _defaulted.put(id(given), known)
    return obj if known[1] is given else replace(obj, spec=known[1])


def template(obj: v1.PodTemplate) -> v1.PodTemplate:
    return put(obj, template=template_spec(obj.template))


def template_spec(obj: v1.PodTemplateSpec) -> v1.PodTemplateSpec:
    """The template of a workload."""
    return put(obj, spec=pod_spec(obj.spec))


def pod_spec(spec: v1.PodSpec) -> v1.PodSpec:
    """What pods and templates have in common."""
    changes: dict[str, Any] = {}
    if not spec.dnsPolicy:
        changes["dnsPolicy"] = "ClusterFirst"
    if not spec.restartPolicy:
        changes["restartPolicy"] = "Always"
    if not spec.schedulerName:
        changes["schedulerName"] = "default-scheduler"
    if spec.securityContext is None:
        changes["securityContext"] = _NO_CONTEXT
    if spec.terminationGracePeriodSeconds is None:
        changes["terminationGracePeriodSeconds"] = 30
    if not spec.nodeSelector:
        # An empty map is not told from none at all.
        _turn(changes, spec, "nodeSelector", EMPTY)
    for name in _MEMBERS:
        members = getattr(spec, name)
        if members:
            _turn(changes, spec, name, each(members, _container))
    if spec.volumes:
        _turn(changes, spec, "volumes", each(spec.volumes, volume))
    if spec.overhead:
        _turn(changes, spec, "overhead", amounts(spec.overhead))
    if spec.resources is not None:
        _turn(changes, spec, "resources", requirements(spec.resources))
    if spec.serviceAccountName != spec.serviceAccount:
        # Set with either name, read with both.
        account = spec.serviceAccountName or spec.serviceAccount
        changes["serviceAccountName"] = changes["serviceAccount"] = account
    return replace(spec, **changes) if changes else spec


def _pod_only(spec: v1.PodSpec) -> v1.PodSpec:
    if spec.enableServiceLinks is None:
        spec = replace(spec, enableServiceLinks=True)
    if (spec.terminationGracePeriodSeconds or 0) < 0:
        # Upstream reads it so, of pods and not of templates.
        spec = replace(spec, terminationGracePeriodSeconds=1)
    for name in ("containers", "initContainers"):
        members: tuple[v1.Container, ...] = getattr(spec, name)
        filled = each(members, _requested)
        if spec.hostNetwork:
            filled = each(filled, _on_host)
        if filled is not members:
            spec = replace(spec, **{name: filled})
    return spec if spec.resources is None else pod_level(spec, spec.resources)


def _requested(container: v1.Container) -> v1.Container:
    """Where only a limit is given, it is the request too."""
    resources = container.resources
    if not resources.limits:
        return container
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    if not missing:
        return container
    return put(container, resources=put(resources, requests={**resources.requests, **missing}))


def _on_host(container: v1.Container) -> v1.Container:
    return put(container, ports=each(container.ports, lambda port: zero(port, hostPort=port.containerPort)))


def requirements(resources: v1.ResourceRequirements) -> v1.ResourceRequirements:
    """Requests and limits, written the server's way."""
    limits, requests = amounts(resources.limits), amounts(resources.requests)
    if limits is resources.limits and requests is resources.requests:
        return resources
    return replace(resources, limits=limits, requests=requests)


def _container(container: Any) -> Any:
    changes: dict[str, Any] = {}
    if not container.imagePullPolicy:
        changes["imagePullPolicy"] = pull_policy(container.image)
    if not container.terminationMessagePath:
        changes["terminationMessagePath"] = "/dev/termination-log"
    if not container.terminationMessagePolicy:
        changes["terminationMessagePolicy"] = "File"
    if container.ports:
        _turn(changes, container, "ports", each(container.ports, _port))
    if container.env:
        _turn(changes, container, "env", each(container.env, _env))
    resources = container.resources
    if resources.limits or resources.requests:
        _turn(changes, container, "resources", requirements(resources))
    for name in _PROBES:
        probe = getattr(container, name)
        if probe is not None:
            _turn(changes, container, name, _probe(probe))
    if container.lifecycle is not None:
        _turn(changes, container, "lifecycle", _lifecycle(container.lifecycle))
    return replace(container, **changes) if changes else container


def _turn(changes: dict[str, Any], obj: Any, name: str, value: Any) -> None:
    """Note a field that is filled in, if anything was missing in it."""
    if value is not getattr(obj, name):
        changes[name] = value


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def _port(port: v1.ContainerPort) -> v1.ContainerPort:
    return port if port.protocol else replace(port, protocol="TCP")


def _env(variable: v1.EnvVar) -> v1.EnvVar:
    source = variable.valueFrom
    if source is None:
        return variable
    source = put(
        source,
        fieldRef=maybe(source.fieldRef, lambda ref: zero(ref, apiVersion="v1")),
        fileKeyRef=maybe(source.fileKeyRef, lambda ref: unset(ref, optional=False)),
        resourceFieldRef=maybe(source.resourceFieldRef, _resource_field),
    )
    return put(variable, valueFrom=source)


def _resource_field(ref: v1.ResourceFieldSelector) -> v1.ResourceFieldSelector:
    return put(ref, divisor=amounts({"divisor": ref.divisor})["divisor"])


def _probe(probe: v1.Probe) -> v1.Probe:
    probe = zero(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    grpc = maybe(probe.grpc, lambda action: unset(action, service=""))
    return put(probe, httpGet=maybe(probe.httpGet, _http), grpc=grpc)


def _http(action: v1.HTTPGetAction) -> v1.HTTPGetAction:
    return zero(action, path="/", scheme="HTTP")


def _lifecycle(lifecycle: v1.Lifecycle) -> v1.Lifecycle:
    # No runtime is told of signals yet.
    return put(
        lifecycle,
        stopSignal=None,
        postStart=maybe(lifecycle.postStart, _handler),
        preStop=maybe(lifecycle.preStop, _handler),
    )


def _handler(handler: v1.LifecycleHandler) -> v1.LifecycleHandler:
    return put(handler, httpGet=maybe(handler.httpGet, _http))
