"""The safety invariants can fail: what violates them is found, at any time of a run."""

from __future__ import annotations

import pytest

from steersman.explore.engine import BrokenReference, reference
from steersman.explore.run import run
from steersman.explore.scenario import InvalidScenario, load

NODE = "create: {apiVersion: v1, kind: Node, metadata: {name: other}, spec: {podCIDR: %s, podCIDRs: [%s]}}"
POD = """
apply:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      nodeName: node-1
      tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]
      containers: [{name: main, image: "app:1"}]
"""
TAINT = "{key: node.kubernetes.io/unreachable, effect: NoExecute}"
TAINTED = f"""
- {POD.strip()}
- settle
%s
- patch: node/node-1
  with: {{spec: {{taints: [{TAINT}]}}}}
- settle
"""


@pytest.mark.parametrize(
    ("cidr", "overlaps"), [("10.128.1.0/24", True), ("10.128.0.0/16", True), ("10.128.2.0/23", False)]
)
def test_overlapping_cidrs_are_found_though_they_are_gone_in_the_end(cidr: str, overlaps: bool) -> None:
    given = load(f"""
name: overlap
cluster: {{nodes: 1, controllers: [node-ipam-controller]}}
steps:
- {NODE % (cidr, cidr)}
- settle
- delete: node/other
""")
    found = run(given).violations
    assert found == ({"cidrs": f"other gets {cidr}, which node-1 has"} if overlaps else {})


def scenario_with_taint(controllers: str, *steps: str) -> str:
    middle = "\n".join(f"- {step}" for step in steps)
    return f"""
name: evicted
cluster: {{nodes: 2, controllers: [{controllers}]}}
steps:{TAINTED % middle}"""


def test_a_pod_that_is_evicted_from_a_node_with_a_running_kubelet_is_found() -> None:
    given = load(scenario_with_taint("node-lifecycle-controller, taint-eviction-controller"))
    with pytest.raises(BrokenReference, match="web is evicted from node-1, whose kubelet runs"):
        reference(given)


def test_a_pod_may_be_evicted_from_a_node_whose_kubelet_is_down() -> None:
    names = "node-lifecycle-controller, taint-eviction-controller"
    given = load(scenario_with_taint(names, "{node: node-1, do: fail}"))
    assert run(given).violations == {}


def test_taints_are_the_users_own_where_no_controller_keeps_them() -> None:
    given = load(scenario_with_taint("taint-eviction-controller"))
    found = run(given)
    assert (found.violations, found.deletes) == ({}, {"pods web": 1})


def test_a_cloud_has_only_the_parts_there_are() -> None:
    with pytest.raises(InvalidScenario, match="the cloud has no disks; it may have routes, instances"):
        load("{name: n, cluster: {cloud: [disks]}, steps: []}")


def test_instances_need_a_cloud() -> None:
    given = load("{name: n, cluster: {nodes: 1}, steps: [{instance: node-1, do: stop}]}")
    assert "the cloud has no instances" in run(given).violations["expect"]


ATTACHMENT = """create:
    apiVersion: storage.k8s.io/v1
    kind: VolumeAttachment
    metadata: {{name: on-{node}}}
    spec:
      attacher: csi.example.com
      nodeName: {node}
      source:
        inlineVolumeSpec:
          accessModes: [{mode}]
          csi: {{driver: csi.example.com, volumeHandle: disk-1}}
"""
DISK = "kubernetes.io/csi/csi.example.com^disk-1"


def attached(mode: str, *between: str) -> str:
    steps = (
        ATTACHMENT.format(node="node-1", mode=mode),
        "{status: volumeattachment/on-node-1, with: {attached: true}}",
        *between,
        ATTACHMENT.format(node="node-2", mode=mode),
    )
    return "name: n\ncluster: {nodes: 2, controllers: [ttl-controller]}\nsteps:\n" + "".join(
        f"- {step.strip()}\n" for step in steps
    )


@pytest.mark.parametrize(
    ("mode", "between", "violated"),
    [
        ("ReadWriteOnce", (), True),
        ("ReadWriteMany", (), False),
        ("ReadWriteOnce", ("{delete: volumeattachment/on-node-1}",), False),
        (
            "ReadWriteOnce",
            ("{status: volumeattachment/on-node-1, with: {attached: true, detachError: {message: busy}}}",),
            False,
        ),
        ("ReadWriteOnce", ("{status: volumeattachment/on-node-1, with: {attached: false}}",), False),
    ],
    ids=["one node at a time", "many nodes", "detached", "detaching failed", "not attached"],
)
def test_a_volume_on_a_second_node_is_found(mode: str, between: tuple[str, ...], violated: bool) -> None:
    message = f"{DISK} is attached to node-1 and gets an attachment to node-2"
    assert run(load(attached(mode, *between))).violations == ({"attachments": message} if violated else {})


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (f"volumesInUse: ['{DISK}']", "has it mounted"),
        (f"volumesAttached: [{{name: '{DISK}', devicePath: ''}}]", "reports it"),
        ("volumesInUse: [other]", ""),
    ],
)
def test_a_volume_that_is_detached_too_early_is_found(status: str, what: str) -> None:
    steps = (f"{{status: node/node-1, with: {{{status}}}}}", "{delete: volumeattachment/on-node-1}")
    found = run(load(attached("ReadWriteOnce", *steps))).violations
    assert found == ({"detaches": f"{DISK} is detached while node-1 {what}"} if what else {})
