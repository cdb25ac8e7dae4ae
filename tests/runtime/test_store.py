"""One copy of each object, found by key and by index, in an order that does not depend on luck."""

import logging
from collections.abc import Hashable, Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from steersman.api.kinds import ObjectMeta, Pod, PodSpec
from steersman.api.scheme import Key
from steersman.intent.controller import Cache, Change
from steersman.runtime.store import Store, revision_of


def pod(
    name: str,
    *,
    namespace: str = "default",
    version: str = "1",
    uid: str = "",
    node: str = "",
    app: str = "",
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or f"uid-{name}",
            resourceVersion=version,
            labels={"app": app} if app else {},
        ),
        spec=PodSpec(nodeName=node),
    )


def node_of(obj: Pod) -> Iterable[Hashable]:
    return (obj.spec.nodeName,) if obj.spec.nodeName else ()


def apps_of(obj: Pod) -> Iterable[Hashable]:
    return (app for app in obj.metadata.labels.get("app", "").split(",") if app)


def names(pods: Iterable[Pod]) -> list[str]:
    return [obj.metadata.name for obj in pods]


def test_a_store_is_a_cache() -> None:
    cache: Cache[Pod] = Store[Pod]()
    assert cache.get(Key("default", "a")) is None
    assert list(cache.list()) == []


def test_putting_answers_what_was_there_before() -> None:
    store = Store[Pod]()
    first, second = pod("a"), pod("a", version="2")
    assert store.put(first) is None
    assert store.put(second) is first
    assert store.get(first.key) is second
    assert len(store) == 1


def test_removing_answers_what_was_there() -> None:
    store = Store[Pod]()
    only = pod("a")
    store.put(only)
    assert store.remove(only.key) is only
    assert store.remove(only.key) is None
    assert only.key not in store


def test_objects_stay_in_the_order_they_were_first_seen() -> None:
    store = Store[Pod]()
    for name in ("c", "a", "b"):
        store.put(pod(name))
    store.put(pod("c", version="9"))
    assert names(store.list()) == ["c", "a", "b"]
    store.remove(Key("default", "c"))
    store.put(pod("c"))
    assert names(store.list()) == ["a", "b", "c"]


def test_a_namespace_is_listed_alone() -> None:
    store = Store[Pod]()
    for name, namespace in (("a", "x"), ("b", "y"), ("c", "x")):
        store.put(pod(name, namespace=namespace))
    assert names(store.list("x")) == ["a", "c"]
    store.put(pod("d", namespace="x"))
    store.remove(Key("x", "a"))
    assert names(store.list("x")) == ["c", "d"]
    assert names(store.list("z")) == []


def test_an_index_finds_objects_and_follows_their_changes() -> None:
    store = Store[Pod]()
    store.add_index("node", node_of)
    store.put(pod("a"))
    store.put(pod("b", node="n1"))
    assert names(store.by("node", "n1")) == ["b"]
    store.put(pod("a", node="n1"))
    assert names(store.by("node", "n1")) == ["b", "a"]
    store.put(pod("b", node="n2"))
    assert names(store.by("node", "n1")) == ["a"]
    assert names(store.by("node", "n2")) == ["b"]
    store.remove(Key("default", "a"))
    assert names(store.by("node", "n1")) == []


def test_an_index_holds_the_object_itself() -> None:
    store = Store[Pod]()
    store.add_index("node", node_of)
    one = pod("a", node="n1")
    store.put(one)
    assert next(iter(store.by("node", "n1"))) is one


def test_an_object_can_be_filed_under_several_values_and_once_under_each() -> None:
    store = Store[Pod]()
    store.add_index("app", apps_of)
    store.put(pod("a", app="web,web,db"))
    store.put(pod("b", app="web"))
    assert names(store.by("app", "web")) == ["a", "b"]
    assert names(store.by("app", "db")) == ["a"]


def test_an_index_added_late_files_what_is_there() -> None:
    store = Store[Pod]()
    store.put(pod("a", node="n1"))
    store.put(pod("b", node="n1"))
    store.add_index("node", node_of)
    assert names(store.by("node", "n1")) == ["a", "b"]


def test_the_same_index_may_be_added_again_but_not_another_of_its_name() -> None:
    store = Store[Pod]()
    store.add_index("node", node_of)
    store.add_index("node", node_of)
    with pytest.raises(ValueError, match="index 'node' already exists"):
        store.add_index("node", apps_of)


def test_an_unknown_index_is_a_mistake_and_not_an_empty_answer() -> None:
    store = Store[Pod]()
    store.add_index("node", node_of)
    with pytest.raises(LookupError, match=r"no index 'app'; there are \['node'\]"):
        store.by("app", "web")


def test_an_object_an_index_cannot_file_is_kept_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    def picky(obj: Pod) -> Iterable[Hashable]:
        if obj.metadata.name == "odd":
            raise RuntimeError("what is this?")
        if obj.metadata.name == "unhashable":
            return ([],)  # type: ignore[return-value]
        return ("fine",)

    store = Store[Pod]()
    store.add_index("picky", picky)
    with caplog.at_level(logging.ERROR):
        for name in ("odd", "unhashable", "a"):
            store.put(pod(name))
    assert names(store.list()) == ["odd", "unhashable", "a"]
    assert names(store.by("picky", "fine")) == ["a"]
    assert "index picky cannot file Pod default/odd" in caplog.text
    store.remove(Key("default", "odd"))
    store.remove(Key("default", "unhashable"))
    assert names(store.by("picky", "fine")) == ["a"]


def test_an_index_that_changes_its_mind_does_not_drop_what_belongs_to_others() -> None:
    moody = {"a": False, "b": True}

    def find(obj: Pod) -> Iterable[Hashable]:
        return ("x",) if moody[obj.metadata.name] else ()

    store = Store[Pod]()
    store.add_index("moody", find)
    store.put(pod("a"))
    store.put(pod("b"))
    moody["a"] = True
    store.remove(Key("default", "a"))
    assert names(store.by("moody", "x")) == ["b"]


def test_removing_an_object_clears_what_was_wrong_with_it() -> None:
    store = Store[Pod]()
    store.put(pod("a"))
    store.unreadable[Key("default", "a")] = "no"
    store.remove(Key("default", "a"))
    assert store.unreadable == {}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1", 1),
        ("18446744073709551615", 2**64 - 1),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("abc", None),
        ("9" * 21, None),
        ("9" * 5000, None),
    ],
)
def test_a_resource_version_is_a_number_or_nothing(text: str, number: int | None) -> None:
    assert revision_of(text) == number


def test_the_revision_is_zero_at_first_and_then_only_grows() -> None:
    store = Store[Pod]()
    assert store.revision == 0
    assert store.reach("5")
    assert not store.reach("5")
    assert not store.reach("3")
    assert store.revision == 5
    assert store.reach("6")


def test_the_revision_goes_back_only_when_forced() -> None:
    store = Store[Pod]()
    store.reach("5")
    assert store.reach("3", forced=True)
    assert (store.revision, store.resource_version) == (3, "3")


def test_versions_that_are_no_numbers_are_counted() -> None:
    store = Store[Pod]()
    assert store.reach("")
    assert store.revision == 1
    assert store.reach("a")
    assert not store.reach("a")
    assert store.reach("b")
    assert store.revision == 3


def test_replacing_says_what_went_what_came_and_what_changed() -> None:
    store = Store[Pod]()
    store.add_index("node", node_of)
    kept, gone, changed, reborn = (pod(n, node="n1") for n in ("kept", "gone", "changed", "reborn"))
    for obj in (kept, gone, changed, reborn):
        store.put(obj)
    changed_now = pod("changed", version="2", node="n2")
    reborn_now = pod("reborn", version="2", uid="another")
    new = pod("new")
    incoming = {obj.key: obj for obj in (new, reborn_now, changed_now, pod("kept", node="n1"))}
    assert store.replace(incoming, {}) == [
        Change(gone, None),
        Change(None, new),
        Change(reborn, None),
        Change(None, reborn_now),
        Change(changed, changed_now),
    ]
    assert store.get(kept.key) is kept
    assert names(store.by("node", "n1")) == ["kept"]
    assert names(store.by("node", "n2")) == ["changed"]
    assert len(store) == 4


def test_replacing_with_the_same_changes_nothing() -> None:
    store = Store[Pod]()
    store.put(pod("a"))
    store.put(pod("b"))
    assert store.replace({obj.key: obj for obj in (pod("b"), pod("a"))}, {}) == []
    assert names(store.list()) == ["a", "b"]


def test_an_object_that_becomes_readable_is_a_change_even_in_the_same_version() -> None:
    store = Store[Pod]()
    bare, full = pod("a"), pod("a", node="n1")
    store.replace({bare.key: bare}, {bare.key: "no"})
    assert store.unreadable == {bare.key: "no"}
    assert store.replace({full.key: full}, {}) == [Change(bare, full)]
    assert store.unreadable == {}


class Against(RuleBasedStateMachine):
    """A store with indexes against a plain dictionary that is searched anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store[Pod]()
        self.model: dict[Key, Pod] = {}
        self.version = 0
        self.store.add_index("node", node_of)

    pods = st.builds(
        pod,
        st.sampled_from("abcde"),
        namespace=st.sampled_from(["x", "y"]),
        node=st.sampled_from(["", "n1", "n2"]),
        app=st.sampled_from(["", "web", "db", "web,db"]),
        uid=st.sampled_from(["", "other"]),
        version=st.sampled_from("123"),
    )

    @rule(obj=pods)
    def put(self, obj: Pod) -> None:
        assert self.store.put(obj) is self.model.get(obj.key)
        self.model[obj.key] = obj

    @rule(obj=pods)
    def remove(self, obj: Pod) -> None:
        assert self.store.remove(obj.key) is self.model.pop(obj.key, None)

    @rule()
    def index_late(self) -> None:
        self.store.add_index("app", apps_of)

    @rule(objs=st.lists(pods, max_size=6))
    def replace(self, objs: list[Pod]) -> None:
        incoming = {obj.key: obj for obj in objs}
        seen = dict(self.model)
        for change in self.store.replace(incoming, {}):
            if change.old is not None:
                assert seen.pop(change.old.key) is change.old
            if change.new is not None:
                assert change.new.key not in seen
                seen[change.new.key] = change.new
        assert {k: (o.metadata.uid, o.metadata.resourceVersion) for k, o in seen.items()} == {
            k: (o.metadata.uid, o.metadata.resourceVersion) for k, o in incoming.items()
        }
        self.model = {key: seen[key] for key in [obj.key for obj in self.store.list()]}

    @invariant()
    def reads_agree(self) -> None:
        assert len(self.store) == len(self.model)
        assert all(self.store.get(key) is obj for key, obj in self.model.items())
        assert [o.key for o in self.store.list()] == list(self.model)
        for namespace in ("x", "y"):
            found = list(self.store.list(namespace))
            assert {o.key for o in found} == {k for k in self.model if k.namespace == namespace}
            assert len(found) == len({o.key for o in found})
        for name, find in (("node", node_of), ("app", apps_of)):
            try:
                self.store.by(name, "")
            except LookupError:
                continue
            for value in ("n1", "n2", "web", "db"):
                found = list(self.store.by(name, value))
                assert len(found) == len({o.key for o in found})
                assert {id(o) for o in found} == {id(o) for o in self.model.values() if value in find(o)}


Against.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_a_store_agrees_with_a_plain_dictionary_whatever_happens = Against.TestCase
