"""Defaults of the rest of the core group."""

from __future__ import annotations

from steersman.api.generated import core_v1 as v1
from steersman.server.defaulting.filling import each, put, unset, zero

NAME_LABEL = "kubernetes.io/metadata.name"
"""Every namespace is labelled with its own name, so that selectors can name it."""


def secret(obj: v1.Secret) -> v1.Secret:
    return zero(obj, type="Opaque")


def namespace(obj: v1.Namespace) -> v1.Namespace:
    meta = obj.metadata
    if meta.name and meta.labels.get(NAME_LABEL) != meta.name:
        meta = put(meta, labels={**meta.labels, NAME_LABEL: meta.name})
    return put(obj, metadata=meta, status=zero(obj.status, phase="Active"))


def node(obj: v1.Node) -> v1.Node:
    status = obj.status
    return put(obj, status=zero(status, allocatable=status.capacity)) if status.capacity else obj


def service(obj: v1.Service) -> v1.Service:
    spec = zero(obj.spec, sessionAffinity="None", type="ClusterIP")
    if spec.sessionAffinity == "None":
        spec = put(spec, sessionAffinityConfig=None)
    elif spec.sessionAffinity == "ClientIP":
        config = spec.sessionAffinityConfig
        if config is None or config.clientIP is None or config.clientIP.timeoutSeconds is None:
            clients = v1.ClientIPConfig(timeoutSeconds=10800)
            spec = put(spec, sessionAffinityConfig=v1.SessionAffinityConfig(clientIP=clients))
    spec = put(spec, ports=each(spec.ports, _service_port))
    outside = spec.type in ("NodePort", "LoadBalancer") or (spec.type == "ClusterIP" and spec.externalIPs)
    if outside:
        spec = zero(spec, externalTrafficPolicy="Cluster")
    if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec = unset(spec, internalTrafficPolicy="Cluster")
    if spec.type == "LoadBalancer":
        spec = unset(spec, allocateLoadBalancerNodePorts=True)
    return put(obj, spec=spec)


def _service_port(port: v1.ServicePort) -> v1.ServicePort:
    return zero(port, protocol="TCP", targetPort=port.port)
