"""Defaults of core kinds other than pods and volumes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.kinds import EMPTY
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_base64,
    canonical_quantities,
    default_if_none,
    default_if_zero,
    map_items,
    put,
)

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that holds a namespace's own name, for selectors."""


def default_secret(obj: v1.Secret) -> v1.Secret:
    """Moves stringData into data, encoded in base64."""
    obj = put(obj, data=_canonical_data(obj.data))
    if obj.stringData:
        plain = {key: b64encode(value.encode()).decode() for key, value in obj.stringData.items()}
        obj = put(obj, data={**obj.data, **plain}, stringData=EMPTY)
    return default_if_zero(obj, type="Opaque")


def default_config_map(obj: v1.ConfigMap) -> v1.ConfigMap:
    return put(obj, binaryData=_canonical_data(obj.binaryData))


def _canonical_data(data: Mapping[str, str]) -> Mapping[str, str]:
    """Data in canonical base64; the same mapping where they are. Raises `MalformedValue` for data that is not base64."""
    changed = {key: text for key, value in data.items() if (text := canonical_base64(value)) != value}
    return {**data, **changed} if changed else data


def default_namespace(obj: v1.Namespace) -> v1.Namespace:
    meta = obj.metadata
    if meta.name and meta.labels.get(NAME_LABEL) != meta.name:
        meta = put(meta, labels={**meta.labels, NAME_LABEL: meta.name})
    return put(obj, metadata=meta, status=default_if_zero(obj.status, phase="Active"))


def default_node(obj: v1.Node) -> v1.Node:
    status = put(
        obj.status,
        capacity=canonical_quantities(obj.status.capacity),
        allocatable=canonical_quantities(obj.status.allocatable),
    )
    status = default_if_zero(status, allocatable=status.capacity) if status.capacity else status
    spec = obj.spec
    # podCIDR is the first of podCIDRs; either one sets the other.
    if spec.podCIDR and not spec.podCIDRs:
        spec = put(spec, podCIDRs=(spec.podCIDR,))
    elif spec.podCIDRs and spec.podCIDR != spec.podCIDRs[0]:
        spec = put(spec, podCIDR=spec.podCIDRs[0])
    return put(obj, spec=spec, status=status)


def default_service(obj: v1.Service) -> v1.Service:
    spec = default_if_zero(obj.spec, sessionAffinity="None", type="ClusterIP")
    if spec.sessionAffinity == "None":
        spec = put(spec, sessionAffinityConfig=None)
    elif spec.sessionAffinity == "ClientIP":
        config = spec.sessionAffinityConfig
        if config is None or config.clientIP is None or config.clientIP.timeoutSeconds is None:
            clients = v1.ClientIPConfig(timeoutSeconds=10800)
            spec = put(spec, sessionAffinityConfig=v1.SessionAffinityConfig(clientIP=clients))
    spec = put(spec, ports=map_items(spec.ports, _default_service_port))
    outside = spec.type in ("NodePort", "LoadBalancer") or (spec.type == "ClusterIP" and spec.externalIPs)
    if outside:
        spec = default_if_zero(spec, externalTrafficPolicy="Cluster")
    if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec = default_if_none(spec, internalTrafficPolicy="Cluster")
    if spec.type == "LoadBalancer":
        spec = default_if_none(spec, allocateLoadBalancerNodePorts=True)
    return default_service_status(put(obj, spec=spec))


def default_service_status(obj: v1.Service) -> v1.Service:
    """Defaults of the status, set also on writes of the status subresource."""
    balancer = obj.status.loadBalancer
    if not balancer.ingress:
        return obj
    points = map_items(
        balancer.ingress, lambda point: default_if_none(point, ipMode="VIP") if point.ip else point
    )
    return put(obj, status=put(obj.status, loadBalancer=put(balancer, ingress=points)))


def default_pod_status(obj: v1.Pod) -> v1.Pod:
    """Keeps podIP and podIPs in step; podIP wins where they differ."""
    status = obj.status
    if status.podIP and (not status.podIPs or status.podIPs[0].ip != status.podIP):
        status = put(status, podIPs=(v1.PodIP(ip=status.podIP),))
    elif status.podIPs and not status.podIP:
        status = put(status, podIP=status.podIPs[0].ip)
    return put(obj, status=status)


def _default_service_port(port: v1.ServicePort) -> v1.ServicePort:
    return default_if_zero(port, protocol="TCP", targetPort=port.port)


def default_endpoints(obj: v1.Endpoints) -> v1.Endpoints:
    return put(obj, subsets=map_items(obj.subsets, _default_subset))


def _default_subset(subset: v1.EndpointSubset) -> v1.EndpointSubset:
    return put(subset, ports=map_items(subset.ports, lambda port: default_if_zero(port, protocol="TCP")))


def default_quota(obj: v1.ResourceQuota) -> v1.ResourceQuota:
    return put(obj, spec=put(obj.spec, hard=canonical_quantities(obj.spec.hard)))


def default_limit_range(obj: v1.LimitRange) -> v1.LimitRange:
    limits = obj.spec.limits
    return obj if limits is None else put(obj, spec=put(obj.spec, limits=map_items(limits, _default_limit)))


def _default_limit(item: v1.LimitRangeItem) -> v1.LimitRangeItem:
    """For containers, defaults follow max, and default requests follow default and min."""
    item = put(
        item,
        max=canonical_quantities(item.max),
        min=canonical_quantities(item.min),
        default=canonical_quantities(item.default),
        defaultRequest=canonical_quantities(item.defaultRequest),
        maxLimitRequestRatio=canonical_quantities(item.maxLimitRequestRatio),
    )
    if item.type != "Container":
        return item
    default = {**item.max, **item.default}
    request = {**item.min, **default, **item.defaultRequest}
    return put(
        item,
        default=item.default if default == item.default else default,
        defaultRequest=item.defaultRequest if request == item.defaultRequest else request,
    )


DEFAULTS: Mapping[GroupKind, Default] = {
    ("", "ConfigMap"): default_config_map,
    ("", "Endpoints"): default_endpoints,
    ("", "LimitRange"): default_limit_range,
    ("", "Namespace"): default_namespace,
    ("", "Node"): default_node,
    ("", "ResourceQuota"): default_quota,
    ("", "Secret"): default_secret,
    ("", "Service"): default_service,
}
