"""The attach/detach controller detaches the volumes that no pod of a node uses any more."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import Conflict, ServerError
from steersman.api.kinds import PODS, ObjectMeta, Pod
from steersman.api.kinds.nodes import NodeCondition
from steersman.api.scheme import Key
from steersman.controllers.attachdetach.metrics import FORCED_DETACHES
from steersman.controllers.shared.volumes import OPERATION_SECONDS
from steersman.intent.actions import Action, Delete, List, Patch, Read
from steersman.intent.verdict import Rest, Wake
from tests.harness.attach_detach import (
    RWX,
    VOLUME,
    Rounds,
    claim,
    driver,
    node,
    pod,
    ready_world,
    volume,
)

KEY = Key("", VOLUME)
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
MINUTES = 60.0


def become(rounds: Rounds, ready: str = "Unknown", taint: str = "", name: str = "n1") -> None:
    """Change the health of a node, or taint it."""
    tainted = node(taints=(taint,) if taint else ()).spec
    found = rounds.node(name)
    status = replace(found.status, conditions=(NodeCondition(type="Ready", status=ready),))
    rounds.put(replace(found, spec=tainted, status=status))


def test_a_volume_is_detached_once_it_is_unmounted() -> None:
    rounds = ready_world()
    rounds.delete_pod()
    assert (rounds.attached_to, rounds.reported()) == (["n1"], (VOLUME,))
    assert rounds.verdicts[KEY] == Rest("still mounted on n1")
    rounds.mount("n1")
    assert (rounds.attached_to, rounds.reported()) == (["(n1)"], ())
    assert rounds.writes() == ["patch node", "delete attachment"]
    rounds.let_go()
    assert (rounds.attached_to, rounds.events) == ([], [])
    assert rounds.memory.volumes == {}
    assert rounds.memory.attachments == {}


def test_the_report_is_withdrawn_before_the_attachment_is_deleted() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    kinds = [type(each) for each in rounds.actions if isinstance(each, Patch | Delete | Read)]
    assert kinds == [Patch, Delete]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_volume_of_a_finished_pod_is_detached(phase: str) -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.put(pod(phase=phase))
    assert rounds.attached_to == ["(n1)"]


def test_the_volume_stays_while_another_pod_of_the_node_uses_it() -> None:
    rounds = ready_world(pod("p2"))
    rounds.mount("n1")
    rounds.delete_pod()
    assert rounds.attached_to == ["n1"]
    rounds.delete_pod("p2")
    assert rounds.attached_to == ["(n1)"]


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.put(pod(uid="another", on="n2"))
    assert rounds.attached_to == ["(n1)"]
    rounds.let_go()
    assert rounds.attached_to == ["n2"]


def test_a_driver_that_ceases_to_need_attaching_gets_its_volumes_detached() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.put(driver(False))
    assert rounds.attached_to == ["(n1)"]


def test_a_driver_that_ceases_to_need_attaching_gets_its_inline_volumes_detached() -> None:
    name = "file.csi.azure.com"
    inline = [{"name": "data", "azureFile": {"secretName": "secret", "shareName": "share"}}]
    rounds = Rounds(node(), pod(volumes=inline))
    rounds.answer(name=f"kubernetes.io/csi/{name}^#secret#share#data#ns")
    rounds.put(replace(driver(False), metadata=ObjectMeta(name=name)))
    assert rounds.attached_to == ["(n1)"]


# -- mounted volumes ------------------------------------------------------------------------------------


def test_a_mounted_volume_stays_on_a_healthy_node_for_ever() -> None:
    rounds = ready_world()
    rounds.delete_pod()
    rounds.advance(60 * MINUTES)
    assert rounds.attached_to == ["n1"]


def test_a_mounted_volume_is_detached_by_force_from_a_node_that_is_not_ready_for_six_minutes() -> None:
    rounds = ready_world()
    become(rounds)
    rounds.delete_pod()
    assert isinstance(rounds.verdicts[KEY], Wake)
    rounds.advance(6 * MINUTES - 1)
    assert rounds.attached_to == ["n1"]
    rounds.advance(2)
    assert (rounds.attached_to, rounds.reported()) == (["(n1)"], ())
    assert rounds.measured(FORCED_DETACHES) == [(1.0, ("timeout",))]


def test_a_mounted_volume_whose_attachment_another_client_deletes_counts_as_detached() -> None:
    """Upstream looks once a minute. So a volume is freed by hand from a node that will not come back."""
    rounds = ready_world()
    become(rounds)
    rounds.delete_pod()
    rounds.put(pod("p2", on="n2"))
    found = rounds.attachment()
    assert found is not None
    rounds.remove(found)
    assert (rounds.attached_to, rounds.reported()) == (["n2"], ())
    assert rounds.measured(FORCED_DETACHES) == []


@pytest.mark.parametrize(
    "flags",
    [{"disable-attach-detach-reconcile-sync": True}, {"attach-detach-reconcile-sync-period": 0.5}],
    ids=str,
)
def test_it_counts_as_attached_where_the_check_is_disabled(flags: dict[str, Any]) -> None:
    rounds = ready_world(**flags)
    rounds.delete_pod()
    found = rounds.attachment()
    assert found is not None
    rounds.remove(found)
    assert rounds.reported() == (VOLUME,)


def test_an_attachment_that_only_the_cache_lacks_is_none_that_is_deleted() -> None:
    rounds = ready_world()
    rounds.unseen_attachment = found = rounds.attachment()
    assert found is not None
    rounds.delete_pod()
    rounds.remove(found)
    assert rounds.reported() == (VOLUME,)


def test_a_report_that_no_attachment_or_pod_was_seen_for_waits_for_the_kubelet() -> None:
    """As upstream, a new process does not know the volume well enough to look for its attachment."""
    rounds = Rounds(node(attached=(VOLUME,), in_use=(VOLUME,)))
    assert rounds.reported() == (VOLUME,)
    rounds.mount("n1")
    assert rounds.reported() == ()


def test_the_time_runs_while_the_node_is_still_healthy() -> None:
    rounds = ready_world()
    rounds.delete_pod()
    rounds.advance(10 * MINUTES)
    become(rounds)
    assert rounds.attached_to == ["(n1)"]
    assert rounds.measured(FORCED_DETACHES) == [(1.0, ("timeout",))]


def test_the_time_begins_anew_when_a_pod_used_the_volume_meanwhile() -> None:
    rounds = ready_world()
    become(rounds)
    rounds.delete_pod()
    rounds.advance(5 * MINUTES)
    rounds.put(pod("p2"))
    rounds.delete_pod("p2")
    rounds.advance(5 * MINUTES)
    assert rounds.attached_to == ["n1"]
    rounds.advance(2 * MINUTES)
    assert rounds.attached_to == ["(n1)"]


def test_the_time_begins_anew_with_the_process() -> None:
    rounds = ready_world()
    become(rounds)
    rounds.delete_pod()
    rounds.advance(5 * MINUTES)
    rounds.restart()
    rounds.advance(5 * MINUTES)
    assert rounds.attached_to == ["n1"]
    rounds.advance(2 * MINUTES)
    assert rounds.attached_to == ["(n1)"]


def test_a_node_that_recovers_in_time_keeps_the_volume() -> None:
    rounds = ready_world()
    become(rounds)
    rounds.delete_pod()
    rounds.advance(5 * MINUTES)
    become(rounds, "True")
    rounds.advance(60 * MINUTES)
    assert rounds.attached_to == ["n1"]


def test_nothing_is_detached_by_force_where_that_is_disabled() -> None:
    flags: dict[str, Any] = {"disable-force-detach-on-timeout": True}
    rounds = ready_world(**flags)
    become(rounds)
    rounds.delete_pod()
    rounds.advance(60 * MINUTES)
    assert rounds.attached_to == ["n1"]
    become(rounds, taint=OUT_OF_SERVICE)
    assert rounds.attached_to == ["(n1)"]
    assert rounds.measured(FORCED_DETACHES) == [(1.0, ("out-of-service",))]


@pytest.mark.parametrize("ready", ["True", "False", "Unknown"])
def test_a_node_out_of_service_loses_its_volumes_at_once(ready: str) -> None:
    rounds = ready_world()
    become(rounds, ready, OUT_OF_SERVICE)
    assert rounds.attached_to == ["n1"]
    rounds.delete_pod()
    assert (rounds.attached_to, rounds.reported()) == (["(n1)"], ())
    assert rounds.measured(FORCED_DETACHES) == [(1.0, ("out-of-service",))]


def test_another_taint_changes_nothing() -> None:
    rounds = ready_world()
    become(rounds, "True", "node.kubernetes.io/unreachable")
    rounds.delete_pod()
    assert rounds.attached_to == ["n1"]


def test_a_safe_detach_is_not_counted_as_forced() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    assert rounds.measured(FORCED_DETACHES) == []


def test_a_volume_that_is_unmounted_after_the_time_counts_as_forced_all_the_same() -> None:
    rounds = ready_world()
    rounds.delete_pod()
    rounds.advance(7 * MINUTES)
    rounds.mount("n1")
    assert rounds.measured(FORCED_DETACHES) == [(1.0, ("timeout",))]


def test_a_volume_that_the_kubelet_is_about_to_mount_is_not_detached() -> None:
    rounds = ready_world()
    rounds.mount("n1")

    def mount_first(action: Action[Any]) -> None:
        if isinstance(action, Patch):
            rounds.before = lambda action: None
            rounds.mount("n1", VOLUME)

    rounds.before = mount_first
    rounds.delete_pod()
    assert (rounds.attached_to, rounds.reported()) == (["n1"], ())
    assert [labels for _, labels in rounds.measured(OPERATION_SECONDS)] == [
        ("kubernetes.io/csi:csi.example.com", "volume_detach", "fail-unknown", "false")
    ]
    rounds.mount("n1")
    rounds.advance(1)
    assert rounds.attached_to == ["(n1)"]


# -- failures -------------------------------------------------------------------------------------------


def test_nothing_is_detached_while_the_report_cannot_be_withdrawn() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.refusals[Patch] = ServerError("etcd is away")
    rounds.delete_pod()
    rounds.advance(30)
    assert rounds.attached_to == ["n1"]
    rounds.refusals.clear()
    rounds.advance(2)
    assert rounds.attached_to == ["(n1)"]


def test_a_report_that_always_conflicts_is_tried_again_later() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.refusals[Patch] = Conflict("changed")
    rounds.delete_pod()
    assert rounds.attached_to == ["n1"]
    rounds.refusals.clear()
    rounds.advance(2)
    assert rounds.attached_to == ["(n1)"]


def test_a_conflicting_change_of_the_node_is_kept() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    other = "kubernetes.io/aws-ebs/of-another-time"

    def change_first(action: Action[Any]) -> None:
        if isinstance(action, Patch):
            rounds.before = lambda action: None
            found = rounds.node()
            listed = (*found.status.volumesAttached, replace(found.status.volumesAttached[0], name=other))
            rounds.put(replace(found, status=replace(found.status, volumesAttached=listed)))

    rounds.before = change_first
    rounds.delete_pod()
    assert rounds.reported() == (other,)
    assert rounds.attached_to == ["(n1)"]


def test_a_failed_deletion_is_tried_again() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.refusals[Delete] = ServerError("etcd is away")
    rounds.delete_pod()
    assert (rounds.attached_to, rounds.reported()) == (["n1"], ())
    rounds.refusals.clear()
    rounds.advance(2)
    assert rounds.attached_to == ["(n1)"]


def test_an_attachment_that_another_client_makes_anew_during_the_detach_is_deleted_too() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    found = rounds.attachment()
    assert found is not None
    rounds.put(replace(found, metadata=replace(found.metadata, uid="another", deletionTimestamp=None)))
    assert rounds.attached_to == ["n1"]
    rounds.advance(121)
    assert rounds.attached_to == ["(n1)"]


def test_an_attach_under_way_is_finished_before_the_volume_is_detached() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.delete_pod()
    assert rounds.attached_to == ["n1"]
    rounds.answer()
    assert (rounds.attached_to, rounds.reported()) == (["(n1)"], ())
    rounds.let_go()
    assert rounds.memory.volumes == {}


def test_an_attach_that_is_never_answered_is_given_up_for_a_detach() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.delete_pod()
    rounds.advance(121)
    assert rounds.attached_to == ["(n1)"]


def test_an_attach_that_failed_is_detached_at_once() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.answer(error="no")
    rounds.delete_pod()
    assert rounds.attached_to == ["(n1)"]


# -- nodes and processes that go --------------------------------------------------------------------------


def test_the_volumes_of_a_deleted_node_stay_while_its_pods_do() -> None:
    rounds = ready_world()
    rounds.remove(rounds.node())
    rounds.advance(60 * MINUTES)
    assert rounds.attached_to == ["n1"]


def test_a_mounted_volume_of_a_deleted_node_is_detached_after_six_minutes() -> None:
    rounds = ready_world()
    rounds.remove(rounds.node())
    rounds.delete_pod()
    rounds.advance(6 * MINUTES - 1)
    assert rounds.attached_to == ["n1"]
    rounds.advance(2)
    assert rounds.attached_to == ["(n1)"]


def test_an_unmounted_volume_of_a_deleted_node_is_detached_at_once() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.remove(rounds.node())
    rounds.delete_pod()
    assert rounds.attached_to == ["(n1)"]


def test_the_volume_of_an_unknown_node_counts_as_mounted() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.caches.remove(rounds.node())
    (user,) = rounds.caches[PODS].list()
    rounds.caches.remove(user)
    rounds.restart()
    assert rounds.attached_to == ["n1"]
    rounds.advance(6 * MINUTES + 1)
    assert rounds.attached_to == ["(n1)"]


def test_a_new_process_detaches_what_no_pod_uses() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    (user,) = rounds.caches[PODS].list()
    rounds.caches.remove(user)
    rounds.restart()
    assert (rounds.attached_to, rounds.reported()) == (["(n1)"], ())


@pytest.mark.parametrize(
    ("unseen", "waits"),
    [
        (pod(), True),
        (pod("another"), True),
        (pod(phase="Succeeded"), False),
        (pod(on="n2"), False),
        (pod(pv="other"), False),
        (pod(namespace="other"), False),
    ],
    ids=["the pod", "another pod", "finished", "another node", "another claim", "another namespace"],
)
def test_a_new_process_whose_list_of_pods_is_old_detaches_nothing_that_they_use(
    unseen: Pod, waits: bool
) -> None:
    rounds = ready_world()
    rounds.mount("n1")
    (user,) = rounds.caches[PODS].list()
    rounds.caches.remove(user)
    rounds.unseen_pods = [unseen]
    rounds.restart()
    rounds.advance(5)
    assert rounds.attached_to == (["n1"] if waits else ["(n1)"])
    if waits:
        rounds.unseen_pods = []
        rounds.put(unseen)
        assert (rounds.attached_to, rounds.reported()) == (["n1"], (VOLUME,))


def test_an_inline_volume_is_looked_for_in_pods_that_the_cache_does_not_show_too() -> None:
    user = pod(volumes=[{"name": "data", "cinder": {"volumeID": "disk"}}])
    name = "kubernetes.io/csi/cinder.csi.openstack.org^disk"
    rounds = Rounds(node(), user)
    rounds.answer(name=name)
    rounds.caches.remove(user)
    rounds.unseen_pods = [user]
    rounds.restart()
    assert rounds.attached_to == ["n1"]


def test_a_pod_that_the_process_saw_go_is_not_looked_for() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    assert [each for each in rounds.actions if isinstance(each, List)] == []


def test_a_new_process_finishes_a_detach() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    rounds.restart()
    assert rounds.writes() == ["patch node", "delete attachment"]
    rounds.let_go()
    assert rounds.memory.volumes == {}


@pytest.mark.parametrize(
    "name", [VOLUME, "kubernetes.io/fc/[5001]:1", "kubernetes.io/iscsi/portal:3260:iqn:1"]
)
def test_a_report_without_an_attachment_or_a_pod_is_withdrawn(name: str) -> None:
    rounds = Rounds(node(attached=(name,)))
    assert rounds.reported() == ()
    assert rounds.memory.volumes == {}


def test_a_report_of_an_unmanaged_node_is_withdrawn_too() -> None:
    assert Rounds(node(managed=False, attached=(VOLUME,))).reported() == ()


def test_a_report_of_a_plugin_that_is_gone_is_left_alone() -> None:
    rounds = Rounds(node(attached=("kubernetes.io/aws-ebs/vol-1", "nonsense")))
    assert rounds.actions == []


def test_an_attachment_whose_volume_is_unknown_is_left_alone() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    found = rounds.attachment()
    assert found is not None
    rounds = Rounds(node(), found)
    assert rounds.actions == []


def test_an_attachment_that_no_pod_needs_is_deleted() -> None:
    rounds = ready_world(modes=(RWX,))
    found = rounds.attachment()
    assert found is not None
    rounds = Rounds(node(), volume(modes=(RWX,)), claim(), found)
    assert rounds.attached_to == ["(n1)"]


def test_an_attachment_of_another_name_is_left_alone() -> None:
    rounds = ready_world()
    found = rounds.attachment()
    assert found is not None
    foreign = replace(found, metadata=replace(found.metadata, name="by-hand"))
    rounds = Rounds(node(), volume(), claim(), foreign)
    assert rounds.attached_to == ["n1"]


def test_a_detach_is_timed_from_its_deletion_to_the_drivers_answer() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    rounds.advance(5)
    rounds.let_go()
    assert rounds.measured(OPERATION_SECONDS) == [
        (5.0, ("kubernetes.io/csi:csi.example.com", "volume_detach", "success", "false"))
    ]
