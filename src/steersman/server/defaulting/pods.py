"""Defaults of pods and of the templates they are made from.

A template and a pod are filled differently: some things only show once a pod is made of the template.
Pods of one template share one spec: what was made of a spec is remembered as long as it is in use.
"""

from __future__ import annotations

from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.server.defaulting.filling import each, maybe, put, unset, zero

_RECENT = 256
_recent: dict[int, tuple[v1.PodSpec, v1.PodSpec]] = {}
"""By the identity of a spec as given: that spec (so the identity stays taken) and what was made of it."""


def pod(obj: v1.Pod) -> v1.Pod:
    """A pod: its spec like any template's, and what only pods have."""
    given = obj.spec
    known = _recent.get(id(given))
    if known is None:
        spec = _pod_only(pod_spec(given))
        if len(_recent) >= _RECENT:
            del _recent[next(iter(_recent))]
        _recent[id(given)] = known = (given, spec)
    return put(obj, spec=known[1])


def template(obj: v1.PodTemplate) -> v1.PodTemplate:
    return put(obj, template=template_spec(obj.template))


def template_spec(obj: v1.PodTemplateSpec) -> v1.PodTemplateSpec:
    """The template of a workload."""
    return put(obj, spec=pod_spec(obj.spec))


def pod_spec(spec: v1.PodSpec) -> v1.PodSpec:
    """What pods and templates have in common."""
    spec = zero(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    spec = unset(spec, securityContext=v1.PodSecurityContext(), terminationGracePeriodSeconds=30)
    return put(
        spec,
        containers=each(spec.containers, _container),
        initContainers=each(spec.initContainers, _container),
        ephemeralContainers=each(spec.ephemeralContainers, _container),
        volumes=each(spec.volumes, _volume),
        # Set with either name, read with both.
        serviceAccountName=spec.serviceAccountName or spec.serviceAccount,
        serviceAccount=spec.serviceAccountName or spec.serviceAccount,
    )


def _pod_only(spec: v1.PodSpec) -> v1.PodSpec:
    spec = unset(spec, enableServiceLinks=True)
    spec = put(
        spec,
        containers=each(spec.containers, _requested),
        initContainers=each(spec.initContainers, _requested),
    )
    if spec.hostNetwork:
        spec = put(
            spec,
            containers=each(spec.containers, _on_host),
            initContainers=each(spec.initContainers, _on_host),
        )
    return spec


def _requested(container: v1.Container) -> v1.Container:
    """Where only a limit is given, it is the request too."""
    resources = container.resources
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    if not missing:
        return container
    return put(container, resources=put(resources, requests={**resources.requests, **missing}))


def _on_host(container: v1.Container) -> v1.Container:
    return put(container, ports=each(container.ports, lambda port: zero(port, hostPort=port.containerPort)))


def _container(container: Any) -> Any:
    container = zero(
        container,
        imagePullPolicy=pull_policy(container.image),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    return put(
        container,
        ports=each(container.ports, lambda port: zero(port, protocol="TCP")),
        env=each(container.env, _env),
        livenessProbe=maybe(container.livenessProbe, _probe),
        readinessProbe=maybe(container.readinessProbe, _probe),
        startupProbe=maybe(container.startupProbe, _probe),
        lifecycle=maybe(container.lifecycle, _lifecycle),
    )


def pull_policy(image: str) -> str:
    """Always for ``latest``, said or implied; otherwise once is enough."""
    rest, _, digest = image.partition("@")
    tag = rest.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _env(variable: v1.EnvVar) -> v1.EnvVar:
    source = variable.valueFrom
    if source is None or source.fieldRef is None:
        return variable
    return put(variable, valueFrom=put(source, fieldRef=zero(source.fieldRef, apiVersion="v1")))


def _probe(probe: v1.Probe) -> v1.Probe:
    probe = zero(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    grpc = maybe(probe.grpc, lambda action: unset(action, service=""))
    return put(probe, httpGet=maybe(probe.httpGet, _http), grpc=grpc)


def _http(action: v1.HTTPGetAction) -> v1.HTTPGetAction:
    return zero(action, path="/", scheme="HTTP")


def _lifecycle(lifecycle: v1.Lifecycle) -> v1.Lifecycle:
    return put(
        lifecycle,
        postStart=maybe(lifecycle.postStart, _handler),
        preStop=maybe(lifecycle.preStop, _handler),
    )


def _handler(handler: v1.LifecycleHandler) -> v1.LifecycleHandler:
    return put(handler, httpGet=maybe(handler.httpGet, _http))


# -- volumes ----------------------------------------------------------------------------------

_READABLE = 0o644


def _volume(volume: v1.Volume) -> v1.Volume:
    if all(getattr(volume, name) is None for name in _SOURCES):
        return put(volume, emptyDir=v1.EmptyDirVolumeSource())
    return put(
        volume,
        secret=maybe(volume.secret, lambda source: unset(source, defaultMode=_READABLE)),
        configMap=maybe(volume.configMap, lambda source: unset(source, defaultMode=_READABLE)),
        downwardAPI=maybe(volume.downwardAPI, _downward),
        projected=maybe(volume.projected, _projected),
        hostPath=maybe(volume.hostPath, lambda source: unset(source, type="")),
        image=maybe(volume.image, lambda source: zero(source, pullPolicy=pull_policy(source.reference))),
        ephemeral=maybe(volume.ephemeral, _ephemeral),
    )


_SOURCES = tuple(name for name in v1.Volume.__struct_fields__ if name != "name")


def _downward(source: v1.DownwardAPIVolumeSource) -> v1.DownwardAPIVolumeSource:
    return put(unset(source, defaultMode=_READABLE), items=each(source.items, _file))


def _file(file: v1.DownwardAPIVolumeFile) -> v1.DownwardAPIVolumeFile:
    return put(file, fieldRef=maybe(file.fieldRef, lambda ref: zero(ref, apiVersion="v1")))


def _projected(source: v1.ProjectedVolumeSource) -> v1.ProjectedVolumeSource:
    return put(
        unset(source, defaultMode=_READABLE),
        sources=maybe(source.sources, lambda sources: each(sources, _projection)),
    )


def _projection(source: v1.VolumeProjection) -> v1.VolumeProjection:
    return put(
        source,
        serviceAccountToken=maybe(
            source.serviceAccountToken, lambda token: unset(token, expirationSeconds=3600)
        ),
        downwardAPI=maybe(source.downwardAPI, lambda api: put(api, items=each(api.items, _file))),
    )


def _ephemeral(source: v1.EphemeralVolumeSource) -> v1.EphemeralVolumeSource:
    claim = source.volumeClaimTemplate
    if claim is None:
        return source
    return put(source, volumeClaimTemplate=put(claim, spec=unset(claim.spec, volumeMode="Filesystem")))
