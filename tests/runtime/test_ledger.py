"""No decision is made on a cache that does not show this key's own writes."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.kinds import PODS, Object, ObjectMeta, Pod
from steersman.api.scheme import Key
from steersman.runtime.ledger import FORGIVEN_AFTER, Doubt, Ledger
from steersman.runtime.store import Store
from tests.harness.fake_clock import FakeClock

WEB = Key("default", "web")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ledger() -> tuple[Ledger, Store[Object], FakeClock]:
    store: Store[Object] = Store()
    clock = FakeClock()
    return Ledger({"pods": store}, clock), store, clock


def pod(name: str, uid: str, *, going: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(namespace="default", name=name, uid=uid, deletionTimestamp=NOW if going else None)
    )


def test_a_key_that_wrote_nothing_is_never_behind() -> None:
    book, _, _ = ledger()
    assert book.behind(WEB) is None


def test_a_key_is_behind_until_the_cache_reaches_its_write() -> None:
    book, store, _ = ledger()
    book.wrote(WEB, "pods", "7")
    store.reach("6")
    assert book.behind(WEB) == "pods"
    store.reach("7")
    assert book.behind(WEB) is None
    assert len(book) == 0


def test_a_write_to_a_kind_nobody_watches_is_not_waited_for() -> None:
    book, _, _ = ledger()
    book.wrote(WEB, "leases.coordination.k8s.io", "7")
    assert book.behind(WEB) is None


def test_a_version_that_is_not_a_number_is_not_waited_for() -> None:
    book, _, _ = ledger()
    book.wrote(WEB, "pods", "abc")
    assert book.behind(WEB) is None


def test_a_deleted_pod_is_waited_for_until_it_is_going_gone_or_another() -> None:
    for after in (None, pod("a", "1", going=True), pod("a", "2")):
        book, store, _ = ledger()
        store.put(pod("a", "1"))
        book.deleted(WEB, "pods", Key("default", "a"), "1")
        assert book.behind(WEB) == "pods"
        if after is None:
            store.remove(Key("default", "a"))
        else:
            store.put(after)
        assert book.behind(WEB) is None


def test_a_parked_key_is_named_once_when_the_cache_catches_up() -> None:
    book, store, _ = ledger()
    book.wrote(WEB, "pods", "7")
    book.park(WEB)
    store.reach("6")
    assert list(book.caught_up("pods", 6)) == []
    store.reach("8")
    assert list(book.caught_up("pods", 8)) == [WEB]
    assert list(book.caught_up("pods", 9)) == []


def test_a_debt_is_forgiven_after_five_minutes() -> None:
    book, _, clock = ledger()
    book.wrote(WEB, "pods", "7")
    clock.elapsed = FORGIVEN_AFTER
    assert book.behind(WEB) == "pods"
    clock.elapsed = FORGIVEN_AFTER + 0.01
    assert book.behind(WEB) is None


def test_a_parked_key_is_named_once_when_its_debt_is_forgiven() -> None:
    book, _, clock = ledger()
    book.wrote(WEB, "pods", "7")
    deadline = book.park(WEB)
    assert FORGIVEN_AFTER < deadline < FORGIVEN_AFTER + 1
    assert book.forgiven(FORGIVEN_AFTER) == []
    clock.elapsed = deadline
    assert book.forgiven(deadline) == [WEB]
    assert book.behind(WEB) is None
    assert book.forgiven(deadline + 1) == []
    assert book.deadline is None


def test_the_time_out_of_a_key_ends_when_it_is_decided_and_not_when_it_is_looked_at() -> None:
    book, store, _ = ledger()
    book.wrote(WEB, "pods", "7")
    deadline = book.park(WEB)
    store.reach("7")
    assert book.behind(WEB) is None
    assert book.deadline == deadline
    book.unpark(WEB)
    assert book.deadline is None


def test_a_lost_answer_is_a_doubt_until_the_server_was_asked() -> None:
    book, store, _ = ledger()
    doubt = Doubt(PODS, "default", labels="app=web")
    book.unsure(WEB, doubt)
    book.unsure(WEB, doubt)
    assert book.doubts(WEB) == (doubt,)
    book.cleared(WEB, doubt, [ObjectMeta(resourceVersion="4"), ObjectMeta(resourceVersion="9")])
    assert book.doubts(WEB) == ()
    assert book.behind(WEB) == "pods"
    store.reach("9")
    assert book.behind(WEB) is None


def test_where_nothing_is_found_there_is_nothing_to_wait_for() -> None:
    """The server is far ahead, of other kinds; this one's cache need not get there."""
    book, store, _ = ledger()
    store.reach("3")
    doubt = Doubt(PODS, "default", labels="app=web")
    book.unsure(WEB, doubt)
    book.cleared(WEB, doubt, [ObjectMeta(resourceVersion="3")])
    assert book.behind(WEB) is None
    assert len(book) == 0


def test_an_object_that_is_gone_from_the_server_must_go_from_the_cache() -> None:
    book, store, _ = ledger()
    store.put(pod("a", "1"))
    doubt = Doubt(PODS, "default", "a", "1")
    book.unsure(WEB, doubt)
    book.cleared(WEB, doubt, [ObjectMeta(uid="2", resourceVersion="0")])
    assert book.behind(WEB) == "pods"
    store.remove(Key("default", "a"))
    assert book.behind(WEB) is None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=30),
    st.lists(st.integers(1, 60), max_size=20),
)
def test_a_key_is_behind_exactly_while_some_write_of_it_is_not_shown(
    writes: list[tuple[int, int]], progress: list[int]
) -> None:
    book, store, _ = ledger()
    keys = [Key("default", f"k{n}") for n in range(4)]
    newest = dict.fromkeys(keys, 0)
    for n, revision in writes:
        book.wrote(keys[n], "pods", str(revision))
        newest[keys[n]] = max(newest[keys[n]], revision)
    parked = [key for key in keys if book.behind(key)]
    for key in parked:
        book.park(key)
    for revision in sorted(progress):
        store.reach(str(revision))
        for key in book.caught_up("pods", store.revision):
            assert book.behind(key) is None
            parked.remove(key)
    assert parked == [key for key in keys if newest[key] > store.revision]
