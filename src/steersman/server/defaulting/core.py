"""Defaults of the rest of the core group."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.kinds import EMPTY
from steersman.server.defaulting.missing_fields import Malformed, amounts, each, put, unset, zero

NAME_LABEL = "kubernetes.io/metadata.name"
"""Every namespace is labelled with its own name, so that selectors can name it."""

_is_base64 = re.compile("[A-Za-z0-9+/]*={0,2}").fullmatch
_not_base64 = re.compile("[^A-Za-z0-9+/]").search


def secret(obj: v1.Secret) -> v1.Secret:
    """What was written as plain text is kept like everything else."""
    _readable(obj.data)
    if obj.stringData:
        plain = {key: b64encode(value.encode()).decode() for key, value in obj.stringData.items()}
        obj = put(obj, data={**obj.data, **plain}, stringData=EMPTY)
    return zero(obj, type="Opaque")


def config_map(obj: v1.ConfigMap) -> v1.ConfigMap:
    _readable(obj.binaryData)
    return obj


def _readable(data: Mapping[str, str]) -> None:
    """Raises `Malformed` for data that is not base64."""
    for value in data.values():
        text = value.replace("\n", "").replace("\r", "") if "\n" in value else value
        if len(text) % 4 or not _is_base64(text):
            wrong = _not_base64(text)
            where = wrong.start() if wrong is not None and text[wrong.start()] != "=" else len(text) // 4 * 4
            raise Malformed(f"illegal base64 data at input byte {where}")


def namespace(obj: v1.Namespace) -> v1.Namespace:
    meta = obj.metadata
    if meta.name and meta.labels.get(NAME_LABEL) != meta.name:
        meta = put(meta, labels={**meta.labels, NAME_LABEL: meta.name})
    return put(obj, metadata=meta, status=zero(obj.status, phase="Active"))


def node(obj: v1.Node) -> v1.Node:
    status = put(
        obj.status,
        capacity=amounts(obj.status.capacity),
        allocatable=amounts(obj.status.allocatable),
    )
    status = zero(status, allocatable=status.capacity) if status.capacity else status
    spec = obj.spec
    # The two say the same, the first of several in either.
    if spec.podCIDR and not spec.podCIDRs:
        spec = put(spec, podCIDRs=(spec.podCIDR,))
    elif spec.podCIDRs and spec.podCIDR != spec.podCIDRs[0]:
        spec = put(spec, podCIDR=spec.podCIDRs[0])
    return put(obj, spec=spec, status=status)


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
    return service_status(put(obj, spec=spec))


def service_status(obj: v1.Service) -> v1.Service:
    """What is filled in also where only the status is written."""
    balancer = obj.status.loadBalancer
    if not balancer.ingress:
        return obj
    points = each(balancer.ingress, lambda point: unset(point, ipMode="VIP") if point.ip else point)
    return put(obj, status=put(obj.status, loadBalancer=put(balancer, ingress=points)))


def pod_status(obj: v1.Pod) -> v1.Pod:
    """The address of a pod and the list of its addresses say the same; the first one decides."""
    status = obj.status
    if status.podIP and (not status.podIPs or status.podIPs[0].ip != status.podIP):
        status = put(status, podIPs=(v1.PodIP(ip=status.podIP),))
    elif status.podIPs and not status.podIP:
        status = put(status, podIP=status.podIPs[0].ip)
    return put(obj, status=status)


def _service_port(port: v1.ServicePort) -> v1.ServicePort:
    return zero(port, protocol="TCP", targetPort=port.port)


def endpoints(obj: v1.Endpoints) -> v1.Endpoints:
    return put(obj, subsets=each(obj.subsets, _subset))


def _subset(subset: v1.EndpointSubset) -> v1.EndpointSubset:
    return put(subset, ports=each(subset.ports, lambda port: zero(port, protocol="TCP")))


def quota(obj: v1.ResourceQuota) -> v1.ResourceQuota:
    return put(obj, spec=put(obj.spec, hard=amounts(obj.spec.hard)))


def limit_range(obj: v1.LimitRange) -> v1.LimitRange:
    limits = obj.spec.limits
    return obj if limits is None else put(obj, spec=put(obj.spec, limits=each(limits, _limit)))


def _limit(item: v1.LimitRangeItem) -> v1.LimitRangeItem:
    """Where a container's limits are bounded, the bounds are what it has where it does not say."""
    item = put(
        item,
        **{
            name: amounts(getattr(item, name))
            for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        },
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
