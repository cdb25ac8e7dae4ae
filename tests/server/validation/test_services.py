"""Validation of dual-stack Services: adding, keeping and releasing the secondary IP."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.generated.core_v1 import Service, ServicePort, ServiceSpec
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.validation import validate_create, validate_update

META = ObjectMeta(name="web", namespace="default", resourceVersion="1")
PORT = ServicePort(port=80, protocol="TCP", targetPort=80)
V4, V6 = "10.0.0.9", "fd00::9"


def service(*ips: str, families: tuple[str, ...] | None = None, **spec: Any) -> Service:
    """A service as it is once addresses are given out."""
    return Service(
        metadata=META,
        spec=ServiceSpec(
            clusterIP=ips[0] if ips else "",
            clusterIPs=ips,
            ipFamilies=tuple("IPv6" if ":" in ip else "IPv4" for ip in ips) if families is None else families,
            ports=(PORT,),
            type=spec.pop("type", "ClusterIP"),
            sessionAffinity="None",
            internalTrafficPolicy="Cluster",
            ipFamilyPolicy=spec.pop("policy", "PreferDualStack" if len(ips) > 1 else "SingleStack"),
            **spec,
        ),
    )


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (service(V4), []),
        (service(V4, V6), []),
        (service(V6, V4), []),
        (service(V4, "10.0.0.8"), ["spec.ipFamilies[1]", "spec.clusterIPs"]),
        (service(V4, families=("IPv6",)), ["spec.clusterIPs[0]"]),
        (service(V4, families=("IPv5",)), ["spec.ipFamilies[0]"]),
        (service(V4, V6, "fd00::8", families=("IPv4", "IPv6")), ["spec.clusterIPs"]),
        (service("None", V6, families=()), ["spec.clusterIPs"]),
        (service(V4, V6, policy="SingleStack"), ["spec.ipFamilyPolicy", "spec.ipFamilyPolicy"]),
        (service("None", families=()), []),
        (service("1.2.3", families=()), ["spec.clusterIPs[0]"]),
    ],
)
def test_there_is_one_address_of_each_family(made: Service, wrong: list[str]) -> None:
    assert [problem.field for problem in validate_create("", "Service", made)] == wrong


def test_the_first_address_is_the_one_that_is_said_alone() -> None:
    made = service(V4, V6)
    other = replace(made, spec=replace(made.spec, clusterIP="10.0.0.8"))
    none = replace(made, spec=replace(made.spec, clusterIP=""))
    assert [problem.message for problem in validate_create("", "Service", other)] == [
        'Invalid value: ["10.0.0.9","fd00::9"]: first value must match `clusterIP`'
    ]
    assert [problem.message for problem in validate_create("", "Service", none)] == [
        'Invalid value: ["10.0.0.9","fd00::9"]: must be empty when `clusterIP` is not specified'
    ]


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        (service(V4), service(V4, V6), []),
        (service(V4, V6), service(V4), []),
        (
            service(V4, V6),
            service(V4, policy="PreferDualStack"),
            ["spec.ipFamilyPolicy", "spec.ipFamilyPolicy"],
        ),
        (service(V4, V6), service(V6), ["spec.clusterIPs[0]", "spec.ipFamilies[0]"]),
        (service(V4), service("10.0.0.8"), ["spec.clusterIPs[0]"]),
        (service(V4), service(V6, V4), ["spec.clusterIPs[0]", "spec.ipFamilies[0]"]),
        (service(V4), service(), ["spec.clusterIPs[0]", "spec.ipFamilies[0]"]),
        (service(), service(V4), []),
        (service(V4), service("None", families=("IPv4",)), ["spec.clusterIPs[0]"]),
        (service(V4), service(families=(), policy=None, type="ExternalName", externalName="a.b"), []),
    ],
)
def test_the_first_address_stays_and_the_second_comes_and_goes(
    old: Service, new: Service, wrong: list[str]
) -> None:
    if new.spec.type == "ExternalName":
        new = replace(new, spec=replace(new.spec, internalTrafficPolicy=None))
    assert [problem.field for problem in validate_update("", "Service", new, old)] == wrong


def test_the_second_address_goes_only_where_one_is_enough() -> None:
    wrong = validate_update("", "Service", service(V4, policy="RequireDualStack"), service(V4, V6))
    assert [problem.message for problem in wrong] == [
        "Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary cluster IP",
        "Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary IP family",
    ]


def test_the_class_of_a_balancer_stays_while_it_is_one() -> None:
    balancer: dict[str, Any] = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Cluster",
        "allocateLoadBalancerNodePorts": True,
    }
    old = service(V4, **balancer, loadBalancerClass="x.io/a")
    new = service(V4, **balancer, loadBalancerClass="x.io/b")
    assert [str(problem) for problem in validate_update("", "Service", new, old)] == [
        'spec.loadBalancerClass: Invalid value: "x.io/b": may not change once set'
    ]
    assert validate_update("", "Service", new, service(V4)) == []
