"""What becomes of an intention: rows of rounds and states, without a cluster."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.kinds import PODS, ObjectMeta, OwnerReference, Pod
from steersman.api.scheme import Key
from steersman.intent.actions import Create, Delete, Patch, UpdateStatus
from steersman.shadow.comparison import Comparison, Intention
from steersman.shadow.intention import Effect, changes, effect_of, normalised
from tests.harness.workloads import deployment

NAME = "deployment-controller"
KEY = Key("default", "web")
STATUS = Effect("update status", "Deployment", "deployments.apps", KEY, uid="1", content="3 ready")
POD = Effect("create", "Pod", "pods", Key("default", "web-*"), owner="1")


class Cluster:
    """A cluster of which the states are set by hand."""

    def __init__(self) -> None:
        self.state: object = "as it was"

    def aspect(self, effect: Effect) -> object:
        return self.state


class Rounds:
    """Rounds of one key, a second apart."""

    def __init__(self, grace: float = 30.0) -> None:
        self.cluster = Cluster()
        self.comparison = Comparison(grace, self.cluster)

    def decide(self, now: float, *wanted: Effect) -> list[Intention]:
        return self.comparison.decided(NAME, KEY, wanted, "because", now)

    def due(self, now: float) -> list[Intention]:
        return list(self.comparison.due((NAME, KEY), now))

    @property
    def figures(self) -> tuple[int, int, int]:
        tally = self.comparison.tally(NAME)
        return tally.wanted, tally.fulfilled, tally.superseded


def test_an_intention_is_fulfilled_when_its_object_has_changed_and_it_is_wanted_no_more() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.cluster.state = "written"
    rounds.decide(1.0)
    assert rounds.figures == (1, 1, 0)


def test_an_intention_is_superseded_when_it_is_wanted_no_more_of_an_object_that_has_not_changed() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.decide(1.0)
    assert rounds.figures == (1, 0, 1)


def test_an_intention_is_due_when_it_is_still_wanted_after_the_grace_time() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    assert rounds.comparison.next_due((NAME, KEY), 0.0) == 30.0
    rounds.decide(29.0, STATUS)
    assert rounds.due(29.0) == []
    rounds.decide(30.0, STATUS)
    assert [each.effect for each in rounds.due(30.0)] == [STATUS]


def test_other_figures_of_an_untouched_object_are_the_same_intention() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.decide(20.0, replace(STATUS, content="4 ready"))
    assert len(rounds.due(30.0)) == 1


def test_other_figures_of_an_object_that_was_written_are_a_new_intention() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.cluster.state = "written"
    rounds.decide(20.0, replace(STATUS, content="4 ready"))
    assert rounds.due(30.0) == []
    assert len(rounds.due(50.0)) == 1
    assert rounds.figures == (2, 1, 0)


def test_the_grace_time_runs_from_the_last_of_several_objects() -> None:
    rounds = Rounds()
    rounds.decide(0.0, POD, POD, POD)
    rounds.decide(20.0, POD, POD)
    assert rounds.due(40.0) == []
    assert [each.count for each in rounds.due(50.0)] == [2]
    assert rounds.figures == (3, 1, 0)


def test_a_difference_that_is_fulfilled_afterwards_was_late() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    (found,) = rounds.due(30.0)
    rounds.comparison.report(found)
    assert rounds.comparison.tally(NAME).missing == 1
    rounds.cluster.state = "written"
    assert rounds.decide(31.0) == [found]
    assert (rounds.comparison.tally(NAME).missing, rounds.comparison.tally(NAME).late) == (0, 1)


def test_a_key_with_a_difference_is_decided_again_every_grace_time() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.decide(30.0, STATUS)
    assert rounds.comparison.next_due((NAME, KEY), 30.0) == 60.0
    (found,) = rounds.due(30.0)
    rounds.comparison.report(found)
    rounds.decide(60.0, STATUS)
    assert rounds.comparison.next_due((NAME, KEY), 60.0) == 90.0
    rounds.decide(90.0)
    assert rounds.comparison.next_due((NAME, KEY), 90.0) is None


def test_a_failed_round_leaves_intentions_as_they_are() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.comparison.failed(NAME, KEY, "no rights")
    assert len(rounds.due(30.0)) == 1
    assert rounds.comparison.failing == {(NAME, KEY): "no rights"}
    rounds.decide(31.0)
    assert rounds.comparison.failing == {}


def test_a_round_that_finishes_a_deletion_did_not_want_it() -> None:
    rounds = Rounds()
    delete = Effect("delete", "Pod", "pods", Key("default", "web-x"), uid="2", terminating=True)
    rounds.decide(0.0, delete)
    assert rounds.comparison.wanted_writes.deleted("pods", delete.key) is None
    rounds.decide(1.0, replace(delete, terminating=False))
    assert rounds.comparison.wanted_writes.deleted("pods", delete.key) == 1.0


# -- effects ----------------------------------------------------------------------------------

OWNER = OwnerReference(apiVersion="apps/v1", kind="ReplicaSet", name="web", uid="1", controller=True)


def pod(name: str = "", labels: str = "web") -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name, generateName="web-", labels={"app": labels}, ownerReferences=(OWNER,), uid=name
        )
    )


def test_pods_with_generated_names_are_one_intention() -> None:
    effects = [effect_of(Create(PODS, "default", pod(name))) for name in ("", "")]
    assert effects[0].identity == effects[1].identity
    assert effects[0].key == Key("default", "web-*")
    assert effects[0].owner == "1"


def test_what_two_managers_never_write_alike_is_left_out() -> None:
    one = {"metadata": {"uid": "1", "resourceVersion": "2"}, "conditions": [{"lastTransitionTime": "now"}]}
    other = {"metadata": {"uid": "3"}, "conditions": [{"lastTransitionTime": "then", "message": ""}]}
    assert normalised(one) == normalised(other)
    assert normalised({"replicas": 2}) != normalised({"replicas": 3})


def test_a_status_says_what_it_would_change() -> None:
    web = deployment()
    effect = effect_of(UpdateStatus(web, replace(web.status, replicas=3)))
    assert effect.words == "update deployment default/web status: status.replicas none -> 3"


def test_changes_of_conditions_are_told_by_their_type() -> None:
    before = '{"conditions":[{"type":"Ready","status":"False"},{"type":"Bound","status":"True"}]}'
    after = '{"conditions":[{"type":"Bound","status":"True"},{"type":"Ready","status":"True"}]}'
    assert list(changes(before, after)) == ["conditions[Ready].status False -> True"]


def test_patches_of_other_fields_are_other_intentions() -> None:
    web = pod("web-x")
    one = effect_of(Patch(web, {"metadata": {"finalizers": []}}))
    other = effect_of(Patch(web, {"metadata": {"labels": {"a": "b"}}}))
    assert one.identity != other.identity
    assert effect_of(Delete(web)).deletes


# -- what must not be hidden ------------------------------------------------------------------


def test_a_difference_stays_one_when_its_cause_goes_without_a_write() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    (found,) = rounds.due(30.0)
    rounds.comparison.report(found)
    assert rounds.decide(31.0) == [found]
    assert found.superseded
    assert (rounds.comparison.tally(NAME).missing, rounds.comparison.tally(NAME).late) == (1, 0)


def test_the_status_of_an_object_that_was_deleted_was_not_written() -> None:
    rounds = Rounds()
    rounds.decide(0.0, STATUS)
    rounds.cluster.state = None
    rounds.decide(1.0)
    assert rounds.figures == (1, 0, 1)


def test_pods_that_only_disappeared_were_not_created() -> None:
    rounds = Rounds()
    rounds.cluster.state = frozenset({"1", "2"})
    rounds.decide(0.0, POD)
    rounds.cluster.state = frozenset({"2"})
    rounds.decide(1.0)
    assert rounds.figures == (1, 0, 1)
    rounds.decide(2.0, POD)
    rounds.cluster.state = frozenset({"3"})
    rounds.decide(3.0)
    assert rounds.figures == (2, 1, 1)


def test_the_order_of_conditions_is_no_difference() -> None:
    before = '{"conditions":[{"type":"Ready","status":"True"},{"type":"Bound","status":"True"}]}'
    after = '{"conditions":[{"type":"Bound","status":"True"},{"type":"Ready","status":"True"}]}'
    assert replace(STATUS, before=before, content=after).changes_nothing
    assert not replace(STATUS, before=before, content='{"conditions":[]}').changes_nothing
    assert not STATUS.changes_nothing, "what there is already is not known"


def test_items_of_the_same_type_are_compared_one_by_one() -> None:
    before = '{"addresses":[{"type":"InternalIP","address":"1"},{"type":"InternalIP","address":"2"}]}'
    after = '{"addresses":[{"type":"InternalIP","address":"3"},{"type":"InternalIP","address":"2"}]}'
    assert list(changes(before, after)) == ["addresses[0].address 1 -> 3"]
