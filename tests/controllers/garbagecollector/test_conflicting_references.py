"""Owner references that contradict each other or what there is, row by row: the outcomes are upstream's.

Upstream keeps a virtual node for an owner that it has not seen, and gives it another identity when references to one uid
differ. Here each reference is read by its own coordinates, so only the outcomes can be compared.
"""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import Conflict
from steersman.api.kinds import OwnerReference
from steersman.api.partial_object import PartialObject
from steersman.controllers.garbagecollector.operations import ATTEMPTS
from steersman.controllers.garbagecollector.owner_refs import Coordinates, dependents
from steersman.intent.actions import Action, Delete, Emit, Patch, Read
from steersman.intent.all_resources import Item
from steersman.intent.verdict import InvalidSpec, Rest
from tests.harness.owner_graph import (
    ALL,
    NODES,
    PODS,
    SERVED,
    SETS,
    WIDGETS,
    OwnerGraph,
    going,
    live,
    not_found,
    owned,
    removed,
    thing,
)

OLD_WIDGETS = ApiResource("example.com", "v1beta1", "Widget", "widgets", True, ALL)
"""A version that is served and not preferred."""
UNSERVED = ApiResource("extensions", "v1beta1", "ReplicaSet", "replicasets", True, ALL)
"""A version that is not served any more."""
SECRETS = ApiResource("", "v1", "Secret", "secrets", True, ALL)

WIDGET, WEB, NODE = thing("w"), thing("web"), thing("node", namespace="")
OLD_CHILD = thing("old-child", owned("w", OLD_WIDGETS))
GOOD = thing("good", owned("web"))
UNSERVED_CHILD = thing("unserved-child", owned("web", UNSERVED))
WRONG_KIND = thing("wrong-kind", owned("secret", SECRETS, uid="uid-web"))
CLUSTER_CHILD = thing("cluster-child", owned("web"), namespace="")


def graph(*things: tuple[ApiResource, PartialObject]) -> OwnerGraph:
    made = OwnerGraph()
    made.all_objects.discovered = DiscoveryResult((*SERVED.resources, OLD_WIDGETS, SECRETS))
    made.put(*things)
    return made


def deletes(actions: list[Action[Any]]) -> bool:
    return any(isinstance(action, Delete) for action in actions)


def events(actions: list[Action[Any]]) -> list[str]:
    return [action.message for action in actions if isinstance(action, Emit)]


# -- scopes and namespaces ------------------------------------------------------------------------


@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "child first"])
def test_a_namespaced_child_keeps_to_its_cluster_scoped_owner(owner_first: bool) -> None:
    child = thing("pod", owned("node", NODES))
    made = graph((NODES, NODE)) if owner_first else graph()
    keys = made.put((PODS, child))
    assert bool(keys) is not owner_first
    if not owner_first:
        assert not deletes(made.decide(PODS, child, live(NODE))[0])
        made.put((NODES, NODE))
    assert made.decide(PODS, child) == ([], Rest("owner exists"))


@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "child first"])
def test_a_child_of_an_owner_in_another_namespace_is_reported_and_deleted(owner_first: bool) -> None:
    elsewhere = thing("web", namespace="other")
    things = [(SETS, elsewhere), (PODS, GOOD)]
    made = graph(*(things if owner_first else things[::-1]))
    actions, _ = made.decide(PODS, GOOD, live())
    assert events(actions) == [
        "ownerRef [apps/v1/ReplicaSet, namespace: default, name: web, uid: uid-web] does not exist in "
        'namespace "default"'
    ]
    assert actions[-1] == removed(GOOD)
    assert Coordinates("apps/v1", "ReplicaSet", "default", "web", "uid-web") in made.memory
    assert made.decide(SETS, elsewhere) == ([], Rest("no ownerReferences"))


@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "child first"])
def test_a_cluster_scoped_child_of_a_namespaced_owner_is_reported_and_kept(owner_first: bool) -> None:
    things = [(SETS, WEB), (NODES, CLUSTER_CHILD)]
    made = graph(*(things if owner_first else things[::-1]))
    actions, verdict = made.decide(NODES, CLUSTER_CHILD)
    assert events(actions) == [
        'ownerRef [apps/v1/ReplicaSet, namespace: , name: web, uid: uid-web] does not exist in namespace ""'
    ]
    assert not deletes(actions)
    assert verdict == Rest("not collected: cluster-scoped objects cannot refer to namespaced owners")


@pytest.mark.parametrize("bad_first", [True, False], ids=["bad child first", "good child first"])
def test_a_bad_cluster_scoped_child_does_not_keep_a_good_child_of_a_missing_owner(bad_first: bool) -> None:
    things = [(NODES, CLUSTER_CHILD), (PODS, GOOD)]
    made = graph(*(things if bad_first else things[::-1]))
    assert not deletes(made.decide(NODES, CLUSTER_CHILD, live())[0])
    assert made.decide(PODS, GOOD, live())[0][-1] == removed(GOOD)
    assert not deletes(made.decide(NODES, CLUSTER_CHILD, live())[0]), (
        "still not, now that the owner is absent"
    )


def test_a_bad_cluster_scoped_child_does_not_cost_a_good_child_its_late_owner() -> None:
    made = graph((NODES, CLUSTER_CHILD), (PODS, GOOD))
    assert not deletes(made.decide(NODES, CLUSTER_CHILD, live(WEB))[0])
    assert not deletes(made.decide(PODS, GOOD, live(WEB))[0])
    made.put((SETS, WEB))
    assert made.decide(PODS, GOOD) == ([], Rest("owner exists"))
    assert not deletes(made.decide(NODES, CLUSTER_CHILD)[0])


# -- versions and kinds ---------------------------------------------------------------------------


@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "child first"])
def test_a_child_that_names_another_served_version_of_its_owner_is_kept_with_it(owner_first: bool) -> None:
    made = graph((WIDGETS, WIDGET)) if owner_first else graph()
    made.put((PODS, OLD_CHILD))
    if not owner_first:
        actions, _ = made.decide(PODS, OLD_CHILD, live(WIDGET))
        assert [type(action) for action in actions] == [Read]
        made.put((WIDGETS, WIDGET))
    assert made.decide(PODS, OLD_CHILD) == ([], Rest("owner exists"))


def test_a_child_that_names_another_served_version_of_its_owner_is_deleted_with_it() -> None:
    made = graph((WIDGETS, WIDGET), (PODS, OLD_CHILD))
    assert made.remove(WIDGETS, WIDGET) == [Item(PODS.partial, OLD_CHILD).key]
    actions, _ = made.decide(PODS, OLD_CHILD, live())
    assert actions[-1] == removed(OLD_CHILD)


def unserved(made: OwnerGraph) -> None:
    """The child of an unserved version is not deleted: its round fails, and is tried again."""
    said: list[Action[Any]] = []
    with pytest.raises(InvalidSpec, match=r"unable to get REST mapping for extensions/v1beta1/ReplicaSet\."):
        said += made.decide(PODS, UNSERVED_CHILD, live())[0]
    assert said == []


@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "child first"])
def test_a_child_that_names_an_unserved_version_is_kept_even_without_its_owner(owner_first: bool) -> None:
    things = [(SETS, WEB), (PODS, UNSERVED_CHILD)]
    made = graph(*(things if owner_first else things[::-1]))
    unserved(made)
    made.remove(SETS, WEB)
    unserved(made)


@pytest.mark.parametrize(
    "unserved_first", [True, False], ids=["unserved version first", "served version first"]
)
def test_a_child_that_names_an_unserved_version_does_not_keep_its_siblings(unserved_first: bool) -> None:
    things = [(PODS, UNSERVED_CHILD), (PODS, GOOD)]
    made = graph(*(things if unserved_first else things[::-1]))
    unserved(made)
    assert made.decide(PODS, GOOD, live())[0][-1] == removed(GOOD)
    unserved(made)


@pytest.mark.parametrize("owner", ["before", "between", "after"])
def test_a_child_that_names_another_kind_with_its_owners_uid_is_deleted_and_its_siblings_stay(
    owner: str,
) -> None:
    """The uid belongs to a ReplicaSet; the reference names a Secret with it."""
    made = graph()
    if owner == "before":
        made.put((SETS, WEB))
    made.put((PODS, WRONG_KIND), (PODS, GOOD))
    assert not deletes(made.decide(PODS, GOOD, live(WEB))[0])
    if owner == "between":
        made.put((SETS, WEB))
    assert made.decide(PODS, WRONG_KIND, live(WEB))[0][-1] == removed(WRONG_KIND)
    if owner == "after":
        made.put((SETS, WEB))
    made.remove(PODS, WRONG_KIND)
    assert made.decide(PODS, GOOD) == ([], Rest("owner exists"))
    assert Coordinates("v1", "Secret", "default", "secret", "uid-web") in made.memory
    assert Coordinates("apps/v1", "ReplicaSet", "default", "web", "uid-web") not in made.memory


# -- absent owners --------------------------------------------------------------------------------


def test_an_absent_owner_is_read_once_whatever_else_its_references_say() -> None:
    made = graph()
    reads: list[str] = []

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Read):
            reads.append(action.target.name)
        return live()(action)

    for name, owner, controller in (
        ("a", "rc1", True),
        ("b", "rc2", None),
        ("c", "rc1", False),
        ("d", "rc3", None),
    ):
        reference = owned(owner)
        child = thing(
            name,
            OwnerReference(
                apiVersion=reference.apiVersion,
                kind=reference.kind,
                name=owner,
                uid=reference.uid,
                controller=controller,
            ),
        )
        made.put((PODS, child))
        assert deletes(made.decide(PODS, child, answer)[0])
    assert reads == ["rc1", "rc2", "rc3"]


@pytest.mark.parametrize(
    ("owner", "answers"),
    [
        (None, {Read: not_found("web"), Delete: not_found("pod", "pods")}),
        (going("web", finalizers=("foregroundDeletion",)), {Delete: not_found("pod", "pods")}),
    ],
    ids=["absent", "waiting for its dependents"],
)
def test_a_child_that_is_gone_when_it_is_deleted_is_done_with(
    owner: PartialObject | None, answers: dict[type[Any], Any]
) -> None:
    child = thing("pod", owned("web"))
    made = graph(*([(SETS, owner)] if owner else []), (PODS, child))
    actions, verdict = made.decide(PODS, child, answers)
    assert deletes(actions)
    assert verdict == Rest("already gone or being deleted")


# -- the graph ------------------------------------------------------------------------------------

Step = tuple[str, str, str]
ONE, TWO, THREE, FOUR = ("add", "1", ""), ("add", "2", "1"), ("add", "3", "12"), ("add", "4", "2")


@pytest.mark.parametrize(
    "steps",
    [
        [ONE, TWO, THREE],
        [ONE, TWO, THREE, FOUR, ("delete", "2", "")],
        [ONE, TWO, THREE, ("add", "4", "3"), ("update", "2", "4")],
        [FOUR, THREE, TWO, ONE, ("delete", "2", "")],
        [("add", "1", "1"), ("update", "1", ""), ("delete", "1", "")],
    ],
)
def test_dependents_are_those_whose_references_name_the_owner(steps: list[Step]) -> None:
    made, present = graph(), dict[str, PartialObject]()
    for verb, name, owners in steps:
        obj = thing(name, *(owned(each, PODS) for each in owners))
        if verb == "delete":
            made.remove(PODS, present.pop(name))
        else:
            made.put((PODS, obj))
            present[name] = obj
        for owner in present.values():
            found = {each.name for each in dependents(made.all_objects, Item(PODS.partial, owner))}
            wanted = {
                each.metadata.name
                for each in present.values()
                if each is not owner
                and owner.metadata.uid in [reference.uid for reference in each.metadata.ownerReferences]
            }
            assert found == wanted


# -- patches --------------------------------------------------------------------------------------


def applied(action: Action[Any], obj: PartialObject) -> list[tuple[str, bool | None]]:
    """The owner references after a patch: their uids, and what they block."""
    assert isinstance(action, Patch)
    references: list[Any] = [[each.uid, each.blockOwnerDeletion] for each in obj.metadata.ownerReferences]
    for operation in action.body:
        parts = operation["path"].split("/")
        if operation["op"] == "remove":
            del references[int(parts[3])]
        elif operation["op"] == "replace":
            references[int(parts[3])][1] = operation["value"]
    return [tuple(each) for each in references]


def test_the_references_to_absent_owners_are_removed_and_the_others_stay() -> None:
    child = thing("pod", owned("web"), owned("2"), owned("3"))
    made = graph((SETS, WEB), (PODS, child))
    actions, _ = made.decide(PODS, child, live())
    assert applied(actions[-1], child) == [("uid-web", True)]


def test_only_references_that_block_are_unblocked() -> None:
    waiting = going("1", owned("child"), finalizers=("foregroundDeletion",))
    child = thing("child", owned("1"), owned("2", blocks=False), owned("3", blocks=None))
    made = graph((SETS, waiting), (SETS, child))
    actions, _ = made.decide(
        SETS, child, lambda action: child if isinstance(action, Patch) else live()(action)
    )
    patch = next(action for action in actions if isinstance(action, Patch))
    assert applied(patch, child) == [("uid-1", False), ("uid-2", False), ("uid-3", None)]


def test_a_dependent_that_cannot_be_orphaned_keeps_the_owners_finalizer() -> None:
    owner, child = going("web", finalizers=("orphan",)), thing("pod", owned("web"))
    made = graph((SETS, owner), (PODS, child))
    patches = 0

    def answer(action: Action[Any]) -> Any:
        nonlocal patches
        if isinstance(action, Patch):
            assert action.target.kind.plural == "pods", "the finalizer stays"
            patches += 1
            return Conflict("the server reported a conflict")
        return child

    with pytest.raises(Conflict, match="the server reported a conflict"):
        made.decide(SETS, owner, answer)
    assert patches == 1 + ATTEMPTS
