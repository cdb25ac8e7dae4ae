"""One row for each kind with special cells; the comparison with a real server covers the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated import gated_resources, load, resources
from steersman.api.generated.core_v1 import Endpoints
from steersman.api.generated.networking_v1 import Ingress
from steersman.server.tables import printer_for

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR_AGO = (NOW - timedelta(hours=4)).isoformat()


def cells(api_version: str, kind: str, **document: Any) -> list[Any]:
    group, _, version = api_version.rpartition("/")
    found = load(group, version, kind)
    metadata = {"name": "x", "creationTimestamp": HOUR_AGO, **document.pop("metadata", {})}
    obj = msgspec.convert({"metadata": metadata, **document}, found.type)
    return list(printer_for(found.resource).cells(obj, NOW))


@pytest.mark.parametrize(
    "row", [*resources(), *gated_resources()], ids=lambda row: f"{row.plural}.{row.group}"
)
def test_an_object_with_nothing_in_it_fills_every_column(row: Any) -> None:
    kind = load(row.group, row.version, row.kind)
    if "list" not in row.verbs:
        return
    printer = printer_for(kind.resource)
    found = printer.cells(kind.type(), NOW)
    # Of these upstream, too, has an age and no column for it.
    extra = 1 if row.plural == "ipaddresses" else 0
    assert len(found) == len(printer.columns) + extra
    assert all(isinstance(cell, (str, int, bool)) for cell in found)


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"type": "ClusterIP"}, {}, "<none>"),
        ({"type": "ClusterIP", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, {}, "1.1.1.1,2.2.2.2"),
        ({"type": "LoadBalancer"}, {}, "<pending>"),
        ({"type": "LoadBalancer", "externalIPs": ["1.1.1.1"]}, {}, "1.1.1.1"),
        (
            {"type": "LoadBalancer", "externalIPs": ["1.1.1.1"]},
            {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "h"}, {"ip": "9.9.9.9"}]}},
            "9.9.9.9,h,1.1.1.1",
        ),
        ({"type": "ExternalName", "externalName": "e"}, {}, "e"),
        ({}, {}, "<unknown>"),
    ],
)
def test_a_service_shows_how_it_is_reached_from_outside(spec: Any, status: Any, expected: str) -> None:
    assert cells("v1", "Service", spec=spec, status=status)[3] == expected


@pytest.mark.parametrize(
    ("conditions", "metadata", "expected"),
    [
        ([], {}, "Running"),
        ([("Complete", "True")], {"deletionTimestamp": HOUR_AGO}, "Complete"),
        ([], {"deletionTimestamp": HOUR_AGO}, "Terminating"),
        ([("Failed", "False"), ("Suspended", "True")], {}, "Suspended"),
        ([("FailureTarget", "True"), ("Failed", "True")], {}, "Failed"),
        ([("SuccessCriteriaMet", "True")], {}, "SuccessCriteriaMet"),
    ],
)
def test_a_job_shows_the_condition_that_matters_most(conditions: Any, metadata: Any, expected: str) -> None:
    listed = [{"type": type_, "status": status} for type_, status in conditions]
    assert cells("batch/v1", "Job", metadata=metadata, status={"conditions": listed})[1] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"completions": 3}, "1/3"),
        ({"parallelism": 4}, "1/1 of 4"),
        ({"parallelism": 1}, "1/1"),
        ({}, "1/1"),
    ],
)
def test_a_job_shows_how_many_it_needs(spec: Any, expected: str) -> None:
    assert cells("batch/v1", "Job", spec=spec, status={"succeeded": 1})[2] == expected


@pytest.mark.parametrize(
    ("labels", "unschedulable", "conditions", "expected"),
    [
        ({}, False, [], ["Unknown", "<none>"]),
        ({}, True, [("Ready", "Unknown")], ["NotReady,SchedulingDisabled", "<none>"]),
        (
            {"node-role.kubernetes.io/b": "", "node-role.kubernetes.io/": "", "kubernetes.io/role": "a"},
            False,
            [("DiskPressure", "False"), ("Ready", "True")],
            ["Ready", "a,b"],
        ),
    ],
)
def test_a_node_shows_whether_it_is_ready_and_what_for(
    labels: Any, unschedulable: bool, conditions: Any, expected: list[str]
) -> None:
    found = cells(
        "v1",
        "Node",
        metadata={"labels": labels},
        spec={"unschedulable": unschedulable},
        status={"conditions": [{"type": type_, "status": status} for type_, status in conditions]},
    )
    assert found[1:3] == expected


def test_an_older_autoscaler_shows_its_share_of_cpu() -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    assert cells("autoscaling/v1", "HorizontalPodAutoscaler", spec=spec)[2] == "<none>"
    spec["targetCPUUtilizationPercentage"] = 80
    assert cells("autoscaling/v1", "HorizontalPodAutoscaler", spec=spec)[2] == "cpu: <unknown>/80%"
    status = {"currentCPUUtilizationPercentage": 12}
    found = cells("autoscaling/v1", "HorizontalPodAutoscaler", spec=spec, status=status)
    assert found[1:4] == ["Deployment/d", "cpu: 12%/80%", "<unset>"]


@pytest.mark.parametrize("type_", ["Resource", "External", "Object", "Pods", "ContainerResource", "Odd"])
def test_a_metric_without_its_part_does_not_stop_the_table(type_: str) -> None:
    found = cells("autoscaling/v2", "HorizontalPodAutoscaler", spec={"metrics": [{"type": type_}]})
    assert found[2] == "<unknown type>"


def test_amounts_are_shown_as_the_server_writes_them_and_never_stop_the_table() -> None:
    status = {"hard": {"pods": 4, "limits.cpu": "1000m", "odd": "?"}, "used": {"limits.cpu": 0.5}}
    assert cells("v1", "ResourceQuota", status=status)[1:3] == ["odd: 0/?, pods: 0/4", "limits.cpu: 500m/1"]


@pytest.mark.parametrize(
    ("conditions", "certificate", "expected"),
    [
        ([], "", "Pending"),
        (["Approved"], "eA==", "Approved,Issued"),
        (["Approved", "Denied"], "", "Denied"),
        (["Approved", "Failed"], "", "Approved,Failed"),
    ],
)
def test_a_signing_request_shows_how_far_it_got(conditions: Any, certificate: str, expected: str) -> None:
    status = {"conditions": [{"type": each} for each in conditions], "certificate": certificate}
    assert cells("certificates.k8s.io/v1", "CertificateSigningRequest", status=status)[5] == expected


def test_events_of_both_groups_show_the_same() -> None:
    about = {"kind": "Pod", "name": "p", "fieldPath": "spec"}
    series = {"count": 3, "lastObservedTime": HOUR_AGO}
    older = cells(
        "v1",
        "Event",
        involvedObject=about,
        message=" m ",
        reportingComponent="c",
        reportingInstance="i",
        eventTime=HOUR_AGO,
        series=series,
    )
    newer = cells(
        "events.k8s.io/v1",
        "Event",
        regarding=about,
        note=" m ",
        reportingController="c",
        reportingInstance="i",
        eventTime=HOUR_AGO,
        series=series,
    )
    assert older == newer == ["4h", "", "", "pod/p", "spec", "c, i", "m", "4h", 3, "x"]


def test_a_selector_that_makes_no_sense_is_said_to() -> None:
    odd = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    assert cells("apps/v1", "Deployment", spec={"selector": odd})[-1] == "<invalid>"
    assert cells("apps/v1", "ReplicaSet", spec={"selector": odd})[-1] == "<error>"


def test_flow_schemas_are_listed_by_precedence() -> None:
    order = printer_for("flowschemas.flowcontrol.apiserver.k8s.io").order
    type_ = load("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema").type
    made = [
        msgspec.convert({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}}, type_)
        for name, precedence in (("c", 5), ("b", 9), ("a", 9), ("d", 1))
    ]
    assert [each.metadata.name for each in sorted(made, key=order)] == ["d", "c", "a", "b"]


@given(st.lists(st.lists(st.integers(1, 9), max_size=3), max_size=4))
def test_endpoints_name_three_and_count_the_others(subsets: list[list[int]]) -> None:
    document = {
        "subsets": [
            {
                "addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                "ports": [{"port": port} for port in ports],
            }
            for ports in subsets
        ]
    }
    text = printer_for("endpoints").cells(msgspec.convert(document, Endpoints), NOW)[1]
    total = sum(2 * max(len(ports), 1) for ports in subsets)
    assert isinstance(text, str)
    if not subsets:
        assert text == "<none>"
    elif total > 3:
        assert text.endswith(f" + {total - 3} more...")
        assert text.count(",") == 2
    else:
        assert text.count(",") == total - 1


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=8))
def test_an_ingress_names_three_hosts_and_counts_the_rules_after_them(hosts: list[str]) -> None:
    document = {"spec": {"rules": [{"host": host} for host in hosts]}}
    text = printer_for("ingresses.networking.k8s.io").cells(msgspec.convert(document, Ingress), NOW)[2]
    # As upstream counts: from the third host on, whatever comes is one more.
    named: list[str] = []
    more = False
    for host in hosts:
        more = more or len(named) == 3
        named += [host] if host and not more else []
    assert text == (",".join(named) + (f" + {len(hosts) - 3} more..." if more else "") if named else "*")


@pytest.mark.parametrize(
    ("spec", "conditions", "expected"),
    [
        ({"schedulingPolicy": {"basic": {}}}, [], ["Basic", "<none>", "Pending"]),
        (
            {"schedulingPolicy": {"gang": {"minCount": 2}}},
            [{"type": "PodGroupScheduled", "status": "True"}],
            ["Gang", "<none>", "Scheduled"],
        ),
        (
            {"podGroupTemplateRef": {"workload": {"workloadName": "train"}}},
            [{"type": "PodGroupScheduled", "status": "False"}],
            ["Basic", "train", "Unschedulable"],
        ),
        (
            {},
            [
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
                {"type": "PodGroupScheduled", "status": "True"},
            ],
            ["Basic", "<none>", "PreemptionByScheduler"],
        ),
    ],
)
def test_a_pod_group_shows_its_policy_and_status(spec: Any, conditions: Any, expected: list[str]) -> None:
    shown = cells("scheduling.k8s.io/v1alpha2", "PodGroup", spec=spec, status={"conditions": conditions})
    assert shown[1:] == [*expected, "4h"]


_POOLS = [
    {"totalDevices": 4, "availableDevices": 1, "allocatedDevices": 3, "unavailableDevices": 0},
    {"totalDevices": 2, "availableDevices": 2, "allocatedDevices": 0, "unavailableDevices": 0},
    {"validationError": "pool is incomplete"},
]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, ["-", "-", "-", "-", "-", 0, "Pending", "<none>"]),
        (
            {"poolCount": 3, "pools": _POOLS, "conditions": [("Complete", "True")]},
            ["6", "3", "3", "0", "1", 3, "Complete", "4h"],
        ),
        (
            {"poolCount": 7, "pools": _POOLS[:1], "conditions": [("Complete", "True")]},
            ["4", "1", "3", "0", "0", 7, "Complete (1/7 pools)", "4h"],
        ),
        (
            {"poolCount": 0, "conditions": [("Failed", "True")]},
            ["-", "-", "-", "-", "-", 0, "Failed", "<none>"],
        ),
        ({"poolCount": 0, "conditions": []}, ["0", "0", "0", "0", "0", 0, "Pending", "<none>"]),
    ],
)
def test_a_request_for_the_status_of_pools_shows_their_sums(status: Any, expected: list[Any]) -> None:
    if status is not None:
        listed = [
            {"type": type_, "status": is_, "lastTransitionTime": HOUR_AGO}
            for type_, is_ in status["conditions"]
        ]
        status = {**status, "conditions": listed}
    spec = {"driver": "gpu.example.com"}
    shown = cells("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", spec=spec, status=status)
    assert shown[1:] == ["gpu.example.com", *expected]
