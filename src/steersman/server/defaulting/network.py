"""Defaults of networking and of where services lead."""

from __future__ import annotations

from steersman.api.generated import discovery_v1, networking_v1
from steersman.api.kinds import EMPTY
from steersman.server.defaulting.missing_fields import each, maybe, put, unset


def network_policy(obj: networking_v1.NetworkPolicy) -> networking_v1.NetworkPolicy:
    """Where it does not say, a policy is about what comes in, and about what goes out if it has rules for it."""
    spec = obj.spec
    if not spec.policyTypes:
        spec = put(spec, policyTypes=("Ingress", "Egress") if spec.egress else ("Ingress",))
    spec = put(
        spec,
        ingress=each(spec.ingress, lambda rule: put(rule, ports=each(rule.ports, _port))),
        egress=each(spec.egress, lambda rule: put(rule, ports=each(rule.ports, _port))),
    )
    return put(obj, spec=spec)


def _port(port: networking_v1.NetworkPolicyPort) -> networking_v1.NetworkPolicyPort:
    return unset(port, protocol="TCP")


def ingress_class(obj: networking_v1.IngressClass) -> networking_v1.IngressClass:
    parameters = maybe(obj.spec.parameters, lambda given: unset(given, scope="Cluster"))
    return put(obj, spec=put(obj.spec, parameters=parameters))


def endpoint_slice(obj: discovery_v1.EndpointSlice) -> discovery_v1.EndpointSlice:
    endpoints = maybe(
        obj.endpoints, lambda given: each(given, lambda endpoint: put(endpoint, deprecatedTopology=EMPTY))
    )
    return put(obj, endpoints=endpoints, ports=maybe(obj.ports, lambda ports: each(ports, _endpoint_port)))


def _endpoint_port(port: discovery_v1.EndpointPort) -> discovery_v1.EndpointPort:
    return unset(port, name="", protocol="TCP")
