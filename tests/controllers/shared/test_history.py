"""ControllerRevisions: written as kube-controller-manager writes them, and found by their data."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists
from steersman.api.generated import core_v1
from steersman.api.kinds import ObjectMeta, PodTemplateSpec
from steersman.api.kinds.revisions import ControllerRevision
from steersman.controllers.shared import history
from steersman.intent.actions import Create, Read
from steersman.intent.verdict import InvalidSpec, Rest, Verdict
from steersman.testing.decision_driver import walk
from tests.harness.workloads import CREATED, deployment, pod_template

OWNER = deployment()

CONTAINER = {
    "image": "test",
    "imagePullPolicy": "Always",
    "name": "test",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
SPEC = {
    "restartPolicy": "Always",
    "containers": [CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}


def template(spec: object = SPEC) -> PodTemplateSpec:
    metadata = ObjectMeta(labels={"app": "foo"}, annotations={"test": "value"})
    return PodTemplateSpec(metadata=metadata, spec=msgspec.Raw(msgspec.json.encode(spec)))


def revision(
    number: int = 1, data: object = None, name: str = "web-1", age: timedelta = timedelta()
) -> ControllerRevision:
    return ControllerRevision(
        metadata=ObjectMeta(
            name=name, namespace="default", uid=f"{name}-uid", creationTimestamp=CREATED - age
        ),
        data=msgspec.Raw(msgspec.json.encode(data)),
        revision=number,
    )


def holding(document: object, **others: Any) -> ControllerRevision:
    return revision(data={"spec": {"template": document}}, **others)


def test_a_template_has_the_hash_that_kube_controller_manager_gave_it() -> None:
    data = history.data_of(template())
    assert history.digest(data, 0) == "776999688b"
    assert bytes(data).startswith(b'{"spec":{"template":{"$patch":"replace","metadata":{"annotations":')


def test_what_the_server_of_this_process_holds_hashes_like_what_came_over_the_wire() -> None:
    full = msgspec.convert(
        {"metadata": {"labels": {"app": "foo"}, "annotations": {"test": "value"}}, "spec": SPEC},
        core_v1.PodTemplateSpec,
    )
    assert bytes(history.data_of(full)) == bytes(history.data_of(template()))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a<b>&c", rb'"a\u003cb\u003e\u0026c"'),
        ("line\u2028end\u2029", rb'"line\u2028end\u2029"'),
        ('tab\tquote"back\\', rb'"tab\tquote\"back\\"'),
        (2**53, b"9007199254740992"),
        (2**53 + 1, b"9007199254740992"),
        (2**63 - 1, b"9223372036854776000"),
        ("9223372036854775807", b'"9223372036854775807"'),
    ],
)
def test_values_are_written_as_go_writes_them(value: object, written: bytes) -> None:
    assert written in bytes(history.data_of(template({"x": value})))


def test_a_template_comes_back_from_its_revision_as_it_was() -> None:
    kept = history.new_revision(OWNER, template(), 1, label=history.HASH, hash_="abc")
    back = history.template_of(kept)
    assert (back.metadata, msgspec.json.decode(back.spec)) == (template().metadata, SPEC)


@pytest.mark.parametrize("data", [None, {}, {"spec": {}}, {"spec": {"template": 1}}, [1]])
def test_a_revision_that_holds_no_template_is_nonsense_and_equal_to_none(data: object) -> None:
    with pytest.raises(InvalidSpec, match="default/web-1"):
        history.template_of(revision(data=data))
    assert not history.equivalent(template(), revision(data=data))


def test_a_new_revision_carries_labels_annotations_owner_and_hash() -> None:
    owner = deployment(annotations={"note": "x"})
    made = history.new_revision(owner, pod_template(), 7, label=history.REVISION, hash_="abc")
    assert made.metadata.name == "web-abc"
    assert made.metadata.labels == {"app": "web", history.REVISION: "abc"}
    assert made.metadata.annotations == {"note": "x"}
    assert made.metadata.ownerReferences[0].uid == "web-uid"
    assert made.revision == 7


def test_the_name_of_a_long_owner_leaves_room_for_the_hash() -> None:
    assert history.name_of(deployment(name="x" * 250), "abc") == "x" * 223 + "-abc"


OLD_STYLE = {
    "$patch": "replace",
    "metadata": {"annotations": {"test": "value"}, "creationTimestamp": None, "labels": {"app": "foo"}},
    "spec": SPEC,
}
SILENT: dict[str, Any] = {
    "metadata": {"annotations": {"test": "value"}, "labels": {"app": "foo"}},
    "spec": {"containers": [{"image": "test", "name": "test", "imagePullPolicy": "Always"}]},
}
OTHER = {**SILENT, "spec": {"containers": [{"image": "other", "name": "test", "imagePullPolicy": "Always"}]}}
LONGER = {**SILENT, "spec": {**SILENT["spec"], "terminationGracePeriodSeconds": 31}}


@pytest.mark.parametrize(
    ("document", "alike"),
    [
        pytest.param(OLD_STYLE, True, id="a null that older managers wrote"),
        pytest.param(SILENT, True, id="defaults that were not filled in then"),
        pytest.param(OTHER, False, id="another image"),
        pytest.param(LONGER, False, id="something said that is not the default"),
    ],
)
def test_a_revision_is_equivalent_if_pods_of_it_would_be_alike(document: object, alike: bool) -> None:
    kept = holding(document)
    assert history.equivalent(template(), kept) is alike
    assert not history.same(kept.data, history.data_of(template()))


def test_revisions_are_equal_however_their_data_is_written() -> None:
    data = history.data_of(template())
    document = msgspec.json.decode(data)
    shuffled = msgspec.Raw(
        msgspec.json.encode({"spec": {"template": dict(reversed(document["spec"]["template"].items()))}})
    )
    unlike = revision(2, {"spec": {}}, "web-2")
    like = replace(revision(1), data=shuffled)
    in_process = replace(revision(3), data=document)
    assert history.find_equal(data, [unlike, like, in_process]) == [like, in_process]


def test_revisions_are_in_order_of_number_then_age_then_name() -> None:
    young, elder = revision(1, name="a"), revision(1, name="b", age=timedelta(hours=1))
    namesake, newest = revision(1, name="c"), revision(2, name="0")
    assert history.sort_revisions([newest, namesake, young, elder]) == [elder, young, namesake, newest]


FIRST, SECOND, THIRD = (revision(number, name=f"r{number}") for number in (1, 2, 3))
LATER = revision(3, name="a", age=timedelta(seconds=-1))
LATER_TOO = revision(3, name="b", age=timedelta(seconds=-1))
UNDATED = replace(THIRD, metadata=replace(THIRD.metadata, name="z", creationTimestamp=None))


@pytest.mark.parametrize(
    ("given", "sorted_"),
    [
        pytest.param((SECOND, FIRST, THIRD), (FIRST, SECOND, THIRD), id="out of order"),
        pytest.param((FIRST, SECOND, THIRD), (FIRST, SECOND, THIRD), id="sorted"),
        pytest.param((THIRD, SECOND, FIRST), (FIRST, SECOND, THIRD), id="reversed"),
        pytest.param(
            (THIRD, LATER_TOO, LATER, SECOND, FIRST), (FIRST, SECOND, THIRD, LATER, LATER_TOO), id="with ties"
        ),
        pytest.param((THIRD, UNDATED), (UNDATED, THIRD), id="without a time"),
        pytest.param((), (), id="empty"),
    ],
)
def test_revisions_are_sorted(
    given: tuple[ControllerRevision, ...], sorted_: tuple[ControllerRevision, ...]
) -> None:
    assert history.sort_revisions(given) == list(sorted_)


OF_ONE, OF_TWO = (
    {"spec": {"template": {"labels": {"foo": "bar"}}}},
    {"spec": {"template": {"labels": {"goo": "car"}}}},
)


@pytest.mark.parametrize(
    ("known", "found"),
    [
        pytest.param({"one": OF_ONE, "two": OF_TWO, "three": OF_TWO}, ["one"], id="one"),
        pytest.param({"one": OF_ONE, "two": OF_ONE}, ["one", "two"], id="two"),
        pytest.param({}, [], id="of none"),
        pytest.param({"two": OF_TWO, "three": OF_TWO}, [], id="none"),
    ],
)
def test_equal_revisions_are_found_by_their_data(known: dict[str, Any], found: list[str]) -> None:
    needle = msgspec.Raw(msgspec.json.encode(OF_ONE))
    equal = history.find_equal(needle, [revision(1, data, name) for name, data in known.items()])
    assert [one.metadata.name for one in equal] == found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(("web", 0), ("web", 0), True), (("web", 0), ("db", 0), False), (("web", 0), ("web", 1), False)],
)
def test_names_differ_by_owner_and_by_collision_count(
    one: tuple[str, int], other: tuple[str, int], same: bool
) -> None:
    data = history.data_of(template())
    first, second = (
        history.name_of(deployment(name=name), history.digest(data, collisions))
        for name, collisions in (one, other)
    )
    assert (first == second) is same


@pytest.mark.parametrize(("numbers", "following"), [((), 1), ((1,), 2), ((3, 9, 4), 10)])
def test_the_next_number_is_one_more_than_the_highest(numbers: tuple[int, ...], following: int) -> None:
    assert history.next_revision([revision(number) for number in numbers]) == following


@pytest.mark.parametrize(
    ("live", "limit", "gone"),
    [
        ((), 4, []),
        ((), 2, ["1", "2"]),
        (("1", "4"), 1, ["2"]),
        (("1", "2", "3", "4"), 0, []),
        ((), 0, ["1", "2", "3", "4"]),
        ((), -1, []),
        ((), None, []),
    ],
)
def test_the_oldest_idle_revisions_go_first(
    live: tuple[str, ...], limit: int | None, gone: list[str]
) -> None:
    revisions = [revision(number, name=str(number)) for number in range(1, 5)]
    assert [one.metadata.name for one in history.beyond_limit(revisions, live, limit)] == gone


async def keeping(found: list[tuple[ControllerRevision, int]]) -> Verdict:
    made = history.new_revision(OWNER, template(), 1, label=history.HASH, hash_="first")
    found.append(await history.create_revision(OWNER, made, 0))
    return Rest("kept")


def test_a_name_taken_by_another_content_is_given_up_for_the_next() -> None:
    found: list[tuple[ControllerRevision, int]] = []
    actions, _ = walk(
        keeping(found),
        {
            Create: [
                AlreadyExists("taken"),
                history.new_revision(OWNER, template(), 1, label="l", hash_="h"),
            ],
            Read: holding(OTHER),
        },
    )
    names = [action.body.metadata.name for action in actions if isinstance(action, Create)]  # type: ignore[attr-defined]
    data = history.data_of(template())
    assert names == [f"web-{history.digest(data, 0)}", f"web-{history.digest(data, 1)}"]
    assert found[0][1] == 1


def test_a_name_taken_by_the_same_content_is_the_revision() -> None:
    there = replace(revision(), data=history.data_of(template()))
    found: list[tuple[ControllerRevision, int]] = []
    walk(keeping(found), {Create: AlreadyExists("taken"), Read: there})
    assert found == [(there, 0)]


def test_a_revision_that_is_the_newest_again_gets_another_number_only() -> None:
    assert history.renumber(revision(), 5).body == {"metadata": {"uid": "web-1-uid"}, "revision": 5}
