"""Pods as endpoints of Services: eligibility, ports, and the Services that a changed pod concerns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds import (
    PODS,
    Condition,
    Container,
    ContainerPort,
    InitContainer,
    ObjectMeta,
    Pod,
    PodIP,
    PodSpec,
    PodStatus,
)
from steersman.api.kinds.services import SERVICES, Service, ServicePort, ServiceSpec
from steersman.api.scheme import Key
from steersman.controllers.shared.service_pods import (
    SELECTING,
    affected,
    endpoint_changes,
    enqueue_services,
    find_port,
    selected_pods,
    should_be_in_endpoints,
    should_set_hostname,
)
from steersman.intent.controller import Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.testing.decision_driver import StaticCaches

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def keys(text: str) -> list[Key]:
    return [Key("ns", name) for name in text]


@pytest.mark.parametrize(
    ("before", "after", "joined_or_left", "either"),
    [
        pytest.param("abc", "abc", "", "abc", id="the same"),
        pytest.param("abc", "def", "abcdef", "abcdef", id="all left, others joined"),
        pytest.param("abc", "", "abc", "abc", id="all left"),
        pytest.param("", "abc", "abc", "abc", id="all joined"),
        pytest.param("abc", "bcd", "ad", "abcd", id="one left and one joined"),
        pytest.param("", "", "", "", id="none"),
    ],
)
def test_services_are_updated_that_a_pod_joined_or_left(
    before: str, after: str, joined_or_left: str, either: str
) -> None:
    assert affected(keys(before), keys(after), pod_changed=False) == keys(joined_or_left)
    assert affected(keys(before), keys(after), pod_changed=True) == keys(either)


def pod(name: str = "p", labels: Mapping[str, str] | None = None, **parts: Any) -> Pod:
    meta = ObjectMeta(
        namespace=parts.pop("namespace", "test"),
        name=name,
        labels=labels or {},
        deletionTimestamp=parts.pop("deleted", None),
    )
    return Pod(metadata=meta, **parts)


@pytest.mark.parametrize(
    ("phase", "ips", "terminating", "include", "expected"),
    [
        pytest.param("Failed", "1.2.3.4", False, False, False, id="failed"),
        pytest.param("Succeeded", "1.2.3.4", False, False, False, id="succeeded"),
        pytest.param("Succeeded", "1.2.3.4", True, True, False, id="succeeded and terminating"),
        pytest.param("Running", "", False, False, False, id="without an address"),
        pytest.param("Running", "1.2.3.4", True, False, False, id="terminating, left out"),
        pytest.param("Pending", "1.2.3.4", False, False, True, id="pending"),
        pytest.param("Unknown", "1.2.3.4", False, False, True, id="unknown"),
        pytest.param("Running", "1.2.3.4", False, False, True, id="running"),
        pytest.param("Running", "1.2.3.4 1234::5678:9abc:def0", False, False, True, id="of two families"),
        pytest.param("Running", "1.2.3.4", True, True, True, id="terminating, included"),
    ],
)
def test_a_pod_with_an_address_that_may_run_is_an_endpoint(
    phase: str, ips: str, terminating: bool, include: bool, expected: bool
) -> None:
    one, *more = ips.split() or [""]
    status = PodStatus(
        phase=phase,
        podIP="" if more else one,
        podIPs=tuple(PodIP(ip=ip) for ip in (one, *more)) if more else (),
    )
    subject = pod(status=status, deleted=NOW if terminating else None)
    assert should_be_in_endpoints(subject, include_terminating=include) == expected


@pytest.mark.parametrize(
    ("namespace", "hostname", "subdomain", "expected"),
    [
        ("ns", "foo", "svc", True),
        ("ns", "", "svc", False),
        ("ns", "hostname", "subdomain", False),
        ("other", "hostname", "svc", False),
    ],
)
def test_an_endpoint_has_the_hostname_of_a_pod_in_the_subdomain_of_its_service(
    namespace: str, hostname: str, subdomain: str, expected: bool
) -> None:
    subject = pod(namespace=namespace, spec=PodSpec(hostname=hostname, subdomain=subdomain))
    assert should_set_hostname(subject, Service(metadata=ObjectMeta(name="svc", namespace="ns"))) == expected


def service(name: str, **selector: str) -> Service:
    return Service(
        metadata=ObjectMeta(name=name, namespace="test"), spec=ServiceSpec(type="", selector=selector)
    )


async def _rest(seen: Service, now: datetime) -> Verdict:
    return Rest("done")


WATCHING: Controller[Service] = Controller(
    name="watching",
    watches=(Watch(SERVICES, indexes=SELECTING), Watch(PODS)),
    decide=_rest,
    workers=1,
)
SERVICES_OF_THREE = tuple(service(f"service-{n}", app=f"test-{n}") for n in range(3))


@pytest.mark.parametrize(
    ("number", "expected"), [(0, ["service-0"]), (1, ["service-1"]), (2, ["service-2"]), (3, []), (4, [])]
)
def test_a_new_or_deleted_pod_concerns_the_services_that_select_it(number: int, expected: list[str]) -> None:
    caches = StaticCaches(WATCHING, *SERVICES_OF_THREE)
    subject = pod(labels={"app": f"test-{number}", "label": f"label-{number}"})
    for change in (Change(None, subject), Change(subject, None)):
        assert [key.name for key in enqueue_services(caches, change)] == expected


def test_every_label_of_a_selector_must_match() -> None:
    both = service("both", app="test-0", tier="web")
    none = service("none")
    caches = StaticCaches(WATCHING, both, none, pod("a", {"app": "test-0"}), pod("b", both.spec.selector))
    assert list(enqueue_services(caches, Change(None, pod(labels={"app": "test-0"})))) == []
    assert list(enqueue_services(caches, Change(None, pod(labels=both.spec.selector)))) == [both.key]
    assert [one.metadata.name for one in selected_pods(caches[PODS], both)] == ["b"]
    assert list(selected_pods(caches[PODS], none)) == []


READY = Condition(type="Ready", status="True")
UNREADY = Condition(type="Ready", status="False")


def with_ips(*ips: str) -> PodStatus:
    return PodStatus(
        podIP=ips[0] if ips else "", podIPs=tuple(PodIP(ip=ip) for ip in ips), conditions=(UNREADY,)
    )


BEFORE = pod(labels={"foo": "bar"}, status=with_ips())


def of(*ips: str) -> Pod:
    return replace(BEFORE, status=with_ips(*ips))


@pytest.mark.parametrize(
    ("old", "new", "pod_changed", "membership_changed"),
    [
        pytest.param(BEFORE, BEFORE, False, False, id="no changes"),
        pytest.param(BEFORE, replace(BEFORE, spec=PodSpec(nodeName="changed")), False, False, id="node"),
        pytest.param(BEFORE, of("1.2.3.4"), True, False, id="add primary IPv4"),
        pytest.param(of("1.2.3.4"), of("2.3.4.5"), True, False, id="modify primary IPv4"),
        pytest.param(BEFORE, of("fd00:10:96::1"), True, False, id="add primary IPv6"),
        pytest.param(of("fd00:10:96::1"), of("fd00:10:96::2"), True, False, id="modify primary IPv6"),
        pytest.param(of("1.2.3.4"), of("1.2.3.4", "fd00:10:96::1"), True, False, id="add secondary"),
        pytest.param(of("1.2.3.4", "fd00::1"), of("1.2.3.4", "fd00::2"), True, False, id="modify secondary"),
        pytest.param(of("1.2.3.4", "fd00::1"), of("1.2.3.4"), True, False, id="remove secondary"),
        pytest.param(
            BEFORE, replace(BEFORE, status=PodStatus(conditions=(READY,))), True, False, id="readiness"
        ),
        pytest.param(
            BEFORE,
            replace(BEFORE, status=PodStatus(conditions=(UNREADY,), phase="Failed")),
            True,
            False,
            id="end of a pod that was never ready",
        ),
        pytest.param(
            BEFORE, pod(labels={"foo": "bar"}, status=with_ips(), deleted=NOW), True, False, id="deletion"
        ),
        pytest.param(
            BEFORE, pod(labels={"foo": "bar", "l": "n"}, status=with_ips()), False, True, id="add label"
        ),
        pytest.param(BEFORE, pod(labels={"foo": "new"}, status=with_ips()), False, True, id="modify label"),
        pytest.param(BEFORE, pod(status=with_ips()), False, True, id="remove label"),
        pytest.param(BEFORE, replace(BEFORE, spec=PodSpec(hostname="h")), False, True, id="hostname"),
    ],
)
def test_only_some_changes_of_a_pod_matter_to_services(
    old: Pod, new: Pod, pod_changed: bool, membership_changed: bool
) -> None:
    assert endpoint_changes(old, new) == (pod_changed, membership_changed)
    if not pod_changed and not membership_changed:
        caches = StaticCaches(WATCHING, service("bar", foo="bar"))
        assert list(enqueue_services(caches, Change(old, new))) == []


def test_a_pod_that_is_relabelled_concerns_the_service_it_left_and_the_one_it_joined() -> None:
    caches = StaticCaches(WATCHING, *SERVICES_OF_THREE)
    change = Change(pod(labels={"app": "test-0"}), pod(labels={"app": "test-2"}))
    assert [key.name for key in enqueue_services(caches, change)] == ["service-0", "service-2"]


def container(name: str, **ports: int) -> Container:
    return Container(
        name=name,
        ports=tuple(
            ContainerPort(name=port, containerPort=number, protocol="UDP" if port == "dns" else "TCP")
            for port, number in ports.items()
        ),
    )


def sidecar(policy: str | None, **ports: int) -> InitContainer:
    return InitContainer(name="init", restartPolicy=policy, ports=container("", **ports).ports)


@pytest.mark.parametrize(
    ("spec", "target", "protocol", "expected"),
    [
        pytest.param(PodSpec(), 93, "TCP", 93, id="a number needs no container"),
        pytest.param(PodSpec(containers=(container("a", http=80),)), "http", "TCP", 80, id="a name"),
        pytest.param(
            PodSpec(containers=(container("a"), container("b", http=81))), "http", "TCP", 81, id="any one"
        ),
        pytest.param(PodSpec(containers=(container("a", http=80),)), "https", "TCP", None, id="unknown"),
        pytest.param(
            PodSpec(containers=(container("a", dns=53),)), "dns", "TCP", None, id="another protocol"
        ),
        pytest.param(PodSpec(containers=(container("a", dns=53),)), "dns", "UDP", 53, id="the same protocol"),
        pytest.param(
            PodSpec(containers=(container("a"),), initContainers=(sidecar("Always", http=82),)),
            "http",
            "TCP",
            82,
            id="of a sidecar",
        ),
        pytest.param(
            PodSpec(containers=(container("a", http=80),), initContainers=(sidecar("Always", http=82),)),
            "http",
            "TCP",
            80,
            id="of a container before a sidecar",
        ),
        pytest.param(
            PodSpec(initContainers=(sidecar(None, http=82),)), "http", "TCP", None, id="of an init container"
        ),
    ],
)
def test_a_target_port_is_looked_up_on_the_pod(
    spec: PodSpec, target: int | str, protocol: str, expected: int | None
) -> None:
    port = ServicePort(name="p", port=1, targetPort=target, protocol=protocol)
    assert find_port(pod(spec=spec), port) == expected
