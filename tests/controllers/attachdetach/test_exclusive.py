"""A volume that one node at a time may have: where it is attached, and what pods on other nodes are told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from steersman.api.kinds import Pod
from steersman.api.scheme import Key
from steersman.controllers.attachdetach.attach import volume_message, waiting_message
from steersman.controllers.attachdetach.world import NodeState
from steersman.controllers.shared.volumes import OPERATION_SECONDS, csi_volume
from steersman.intent.verdict import Wake
from tests.harness.attach_detach import (
    ROX,
    RWO,
    RWOP,
    RWX,
    VOLUME,
    Rounds,
    claim,
    node,
    pod,
    ready_world,
    volume,
)

KEY = Key("", VOLUME)
EXCLUSIVE = (
    'p2 FailedAttachVolume Waiting for detach for volume "pv" Volume is already exclusively attached to one node, '
    "waiting on detach before it can be attached to another node"
)
USED = 'p2 FailedAttachVolume Waiting for detach for volume "pv" Volume is already used by pod(s) p1'
ATTACHED = 'p2 SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv" '


def pods(*names: str) -> tuple[Pod, ...]:
    documents = [dict(zip(("namespace", "name"), name.split("/"), strict=True)) for name in names]
    return tuple(msgspec.convert({"metadata": each}, Pod) for each in documents)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        (
            (),
            "Volume is already exclusively attached to one node, waiting on detach before it can be attached to "
            "another node",
        ),
        (("ns1/pod2",), "Volume is already used by pod(s) pod2"),
        (("ns2/pod2",), "Volume is already used by 1 pod(s) in different namespaces"),
        (
            ("ns1/pod2", "ns2/pod3"),
            "Volume is already used by pod(s) pod2 and 1 pod(s) in different namespaces",
        ),
        (("ns1/pod2", "ns1/pod3"), "Volume is already used by pod(s) pod2, pod3"),
        (("ns2/a", "ns3/b"), "Volume is already used by 2 pod(s) in different namespaces"),
    ],
)
def test_a_waiting_pod_is_told_of_pods_in_its_own_namespace(users: tuple[str, ...], message: str) -> None:
    (waiting,) = pods("ns1/pod1")
    holder = NodeState("node2", csi_volume("d", "h", "volume-name"), pods=pods(*users))
    assert waiting_message(waiting, [holder]) == message


def test_the_users_on_all_nodes_are_named() -> None:
    (waiting,) = pods("ns1/pod1")
    known = csi_volume("d", "h", "pv")
    holders = [NodeState(name, known, pods=pods(f"ns1/on-{name}")) for name in ("a", "b")]
    assert waiting_message(waiting, holders) == "Volume is already used by pod(s) on-a, on-b"


def test_a_message_names_the_volume_in_quotes() -> None:
    state = NodeState("n", csi_volume("d", "h", 'odd"name'))
    assert volume_message(state, "Waiting for detach", "x") == 'Waiting for detach for volume "odd\\"name" x'


@pytest.mark.parametrize("modes", [(RWO,), (RWOP,)], ids=str)
def test_a_second_node_waits_and_is_told_once(modes: tuple[str, ...]) -> None:
    rounds = ready_world(modes=modes)
    rounds.put(pod("p2", on="n2"))
    assert (rounds.attached_to, rounds.events) == (["n1"], [USED])
    rounds.mount("n1")
    rounds.put(pod("p3", on="n2"))
    rounds.advance(3600)
    assert (rounds.attached_to, rounds.events) == (["n1"], [USED])


@pytest.mark.parametrize("modes", [(RWX,), (ROX,), (RWO, ROX), ()], ids=str)
def test_a_shared_volume_is_attached_to_all_nodes(modes: tuple[str, ...]) -> None:
    rounds = ready_world(modes=modes)
    rounds.put(pod("p2", on="n2"))
    assert rounds.attached_to == ["n1", "n2"]
    rounds.answer("n2")
    assert (rounds.reported("n1"), rounds.reported("n2")) == ((VOLUME,), (VOLUME,))
    rounds.mount("n1")
    rounds.delete_pod()
    assert rounds.attached_to == ["(n1)", "n2"]


@pytest.mark.parametrize(
    ("modes", "of_node", "of_all"),
    [((RWX,), ["n2"], ["n1", "n2", ""]), ((RWO,), [""], [""])],
    ids=["shared", "exclusive"],
)
def test_a_shared_volume_has_a_round_for_each_node(
    modes: tuple[str, ...], of_node: list[str], of_all: list[str]
) -> None:
    rounds = ready_world(modes=modes)
    rounds.verdicts.clear()
    rounds.put(pod("p2", on="n2"))
    assert list(rounds.verdicts) == [Key(each, VOLUME) for each in of_node]
    rounds.remove(claim())
    rounds.verdicts.clear()
    rounds.put(claim())
    assert list(rounds.verdicts) == [Key(each, VOLUME) for each in of_all]


@pytest.mark.parametrize(("before", "after"), [((RWO,), (RWX,)), ((RWX,), (RWO,))], ids=str)
def test_access_modes_that_change_lose_no_node(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    rounds = ready_world(modes=before)
    rounds.put(volume(modes=after))
    rounds.delete_pod()
    rounds.mount("n1")
    rounds.let_go()
    rounds.put(pod("p2", on="n2"))
    assert rounds.attached_to == ["n2"]
    rounds.answer("n2")
    assert (rounds.reported("n1"), rounds.reported("n2")) == ((), (VOLUME,))
    rounds.delete_pod("p2")
    rounds.let_go("n2")
    rounds.advance(3600)
    assert rounds.memory.volumes == {}
    assert not rounds.memory.counted_nodes(VOLUME)


def test_the_volume_moves_when_its_pod_does() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    assert (rounds.attached_to, rounds.events) == (["(n1)"], [])
    rounds.let_go()
    assert rounds.attached_to == ["n2"]
    rounds.answer("n2")
    assert (rounds.reported("n1"), rounds.reported("n2")) == ((), (VOLUME,))
    assert rounds.events == [ATTACHED]


def test_a_pod_waits_until_the_volume_is_unmounted_elsewhere() -> None:
    rounds = ready_world()
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    assert (rounds.attached_to, rounds.events) == (["n1"], [EXCLUSIVE])
    rounds.mount("n1")
    rounds.let_go()
    rounds.answer("n2")
    assert rounds.events == [EXCLUSIVE, ATTACHED]


def test_a_pod_that_waits_in_vain_and_goes_leaves_nothing() -> None:
    rounds = ready_world()
    rounds.put(pod("p2", on="n2"))
    rounds.delete_pod("p2")
    rounds.put(pod("p2", on="n2"))
    assert rounds.events == [USED, USED]
    assert rounds.attached_to == ["n1"]


def test_one_of_two_pods_that_come_at_once_gets_the_volume() -> None:
    rounds = Rounds(node("n1"), node("n2"), pod("p1"), pod("p2", on="n2"), claim(), volume())
    assert (rounds.attached_to, rounds.events) == (["n1"], [])
    rounds.answer()
    assert [each for each in rounds.events if "Failed" in each] == [USED]
    rounds.delete_pod()
    rounds.let_go()
    assert rounds.attached_to == ["n2"]


def test_the_other_pod_gets_its_turn_when_attaching_fails() -> None:
    rounds = Rounds(node("n1"), node("n2"), pod("p1"), pod("p2", on="n2"), claim(), volume())
    rounds.answer(error="node n1 is broken")
    assert rounds.attached_to == ["n1"]
    rounds.advance(1)
    assert rounds.attached_to == ["n1", "n2"]
    rounds.answer("n2")
    assert rounds.reported("n2") == (VOLUME,)
    assert rounds.reported("n1") == ()


def test_a_pod_waits_for_the_attach_of_another_node() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(), claim(), pod())
    rounds.put(pod("p2", on="n2"))
    rounds.restart()
    assert (rounds.attached_to, rounds.events) == (["n1"], [])
    rounds.advance(119)
    assert rounds.attached_to == ["n1"]


def test_a_detach_that_fails_lets_the_storage_system_decide() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    rounds.let_go(error="busy")
    assert rounds.attached_to == ["(n1)", "n2"]
    assert rounds.reported("n1") == ()


def test_a_detach_that_is_not_answered_lets_the_storage_system_decide() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    rounds.advance(119)
    assert rounds.attached_to == ["(n1)"]
    rounds.advance(2)
    assert rounds.attached_to == ["(n1)", "n2"]


def test_an_attach_that_failed_does_not_keep_the_volume_from_another_node() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(), claim(), pod())
    rounds.mount("n1", VOLUME)
    rounds.answer(error="no")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    rounds.advance(1)
    assert rounds.attached_to == ["n1", "n2"]


def test_an_attach_under_way_does_not_wait_for_a_detach_that_begins_later() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(), claim(), pod())
    rounds.mount("n1", VOLUME)
    rounds.answer(error="no")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    rounds.advance(1)
    rounds.mount("n1")
    assert rounds.attached_to == ["(n1)", "n2"]
    rounds.answer("n2")
    assert (rounds.reported("n2"), rounds.events[-1]) == ((VOLUME,), ATTACHED)


def test_a_pod_waits_for_the_detach_from_a_node_where_attaching_failed() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(), claim(), pod())
    rounds.answer(error="no")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    rounds.advance(119)
    assert rounds.attached_to == ["(n1)"]
    rounds.let_go()
    assert rounds.attached_to == ["n2"]


def test_a_detach_that_fails_after_a_failed_attach_lets_the_storage_system_decide() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(), claim(), pod())
    rounds.answer(error="no")
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    rounds.advance(1)
    rounds.let_go(error="busy")
    assert rounds.attached_to == ["(n1)", "n2"]
    assert [labels[1:3] for _, labels in rounds.measured(OPERATION_SECONDS)] == [
        ("volume_attach", "fail-unknown"),
        ("volume_detach", "fail-unknown"),
    ]


def test_a_pod_waits_for_an_attach_that_is_tried_again_on_another_node() -> None:
    rounds = Rounds(node("n1"), node("n2"), volume(), claim(), pod())
    rounds.advance(121)
    assert rounds.verdicts[KEY] == Wake(timedelta(seconds=120), "being attached to n1")
    rounds.put(pod("p2", on="n2"))
    assert rounds.attached_to == ["n1"]
    rounds.answer()
    assert (rounds.attached_to, rounds.events[-1]) == (["n1"], USED)


def test_a_report_without_an_attachment_counts_as_attached() -> None:
    rounds = Rounds(node("n1", attached=(VOLUME,), in_use=(VOLUME,)), node("n2"), volume(), claim())
    rounds.put(pod("p2", on="n2"))
    assert (rounds.attached_to, rounds.events) == ([], [EXCLUSIVE])


def test_the_volume_of_a_failed_node_moves_when_the_time_is_over() -> None:
    rounds = ready_world()
    rounds.put(node("n1", ready=False, attached=(VOLUME,), in_use=(VOLUME,)))
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    assert rounds.events == [EXCLUSIVE]
    rounds.advance(359)
    assert rounds.attached_to == ["n1"]
    rounds.advance(2)
    assert rounds.attached_to == ["(n1)"]
    rounds.let_go()
    assert rounds.attached_to == ["n2"]


def test_a_fibre_channel_volume_moves_without_a_warning() -> None:
    name = "kubernetes.io/fc/[5001]:1"
    source: dict[str, Any] = {"fc": {"targetWWNs": ["5001"], "lun": 1}}
    rounds = Rounds(node("n1"), node("n2"), volume(**source), claim(), pod())
    rounds.actions.clear()
    rounds.put(pod("p2", on="n2"))
    assert rounds.events == [USED]
    rounds.delete_pod()
    assert (rounds.reported("n1"), rounds.reported("n2")) == ((), (name,))
    assert rounds.events == [USED, ATTACHED]


def test_two_persistent_volumes_of_one_handle_are_one_volume() -> None:
    twin: dict[str, Any] = {"csi": {"driver": "csi.example.com", "volumeHandle": "vol-pv"}}
    rounds = ready_world(volume("twin", **twin), claim("twin"))
    rounds.put(pod("p2", on="n2", pv="twin"))
    assert rounds.attached_to == ["n1"]
    assert rounds.events == [USED.replace('"pv"', '"twin"')]
