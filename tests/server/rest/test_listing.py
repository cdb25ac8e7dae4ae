"""Lists: pages of one instant, and the versions one may ask for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import ApiError, BadRequest, Expired, Invalid, ServerTimeout
from steersman.api.generated import load
from steersman.api.kinds import Object, ObjectMeta
from steersman.server.local import LocalApi
from steersman.server.rest.listing import Page, decode_token, encode_token, page
from steersman.server.server import Server
from steersman.server.storage.store import Store, object_key
from steersman.server.storage.watch import Selection
from tests.harness.fake_clock import FakeClock


def put(store: Store, name: str, namespace: str = "a") -> None:
    obj = Object(metadata=ObjectMeta(namespace=namespace, name=name, resourceVersion=store.next_version))
    store.table("things").put(object_key(namespace, name), obj)


def filled(count: int, history: int = 2048) -> Store:
    store = Store(watch_window=history)
    for i in range(count):
        put(store, f"n{i:03}")
    return store


def names(listing: Page) -> list[str]:
    return [obj.metadata.name for obj in listing.items]


def ask(
    store: Store,
    selection: Selection = Selection(),
    *,
    limit: int = 0,
    continue_: str = "",
    version: str = "",
    match: str = "",
) -> Page:
    return page(
        store,
        store.table("things"),
        selection,
        limit=limit,
        continue_=continue_,
        version=version,
        match=match,
    )


def test_a_list_shows_the_revision_of_the_whole_store() -> None:
    store = filled(3)
    store.table("others").put("x", Object(metadata=ObjectMeta(name="x", resourceVersion=store.next_version)))
    assert ask(store).revision == 5


@given(count=st.integers(0, 12), limit=st.integers(1, 5), churn=st.lists(st.integers(0, 14), max_size=6))
def test_pages_together_are_the_list_at_the_first_pages_instant(
    count: int, limit: int, churn: list[int]
) -> None:
    store = filled(count)
    whole = names(ask(store))
    listing = ask(store, limit=limit)
    seen, revision = names(listing), listing.revision
    while listing.continue_:
        assert listing.remaining == count - len(seen)
        for i in churn:
            put(store, f"n{i:03}")
        for i in churn[::2]:
            if store.table("things").get(f"a/n{i:03}") is not None:
                store.table("things").remove(f"a/n{i:03}")
        listing = ask(store, limit=limit, continue_=listing.continue_)
        assert listing.revision == revision
        seen += names(listing)
    assert seen == whole


def test_how_many_remain_is_not_told_where_a_selector_decides() -> None:
    store = filled(6)
    even = Selection(test=lambda obj: int(obj.metadata.name[1:]) % 2 == 0)
    listing = ask(store, even, limit=2)
    assert (names(listing), listing.remaining) == (["n000", "n002"], None)
    rest = ask(store, even, limit=2, continue_=listing.continue_)
    assert (names(rest), rest.continue_) == (["n004"], "")


@pytest.mark.parametrize(
    ("version", "match", "limit", "expected"),
    [
        ("", "", 0, 4),
        ("0", "", 0, 4),
        ("3", "", 0, 4),
        ("3", "NotOlderThan", 0, 4),
        ("3", "Exact", 0, 2),
        ("3", "", 10, 2),
        ("3", "NotOlderThan", 10, 4),
        ("0", "NotOlderThan", 10, 4),
    ],
)
def test_the_version_asked_for_decides_the_instant_shown(
    version: str, match: str, limit: int, expected: int
) -> None:
    assert len(ask(filled(4), version=version, match=match, limit=limit).items) == expected


@pytest.mark.parametrize(
    ("version", "match", "continue_", "error", "message"),
    [
        ("99", "", "", ServerTimeout, "Timeout: Too large resource version: 99, current: 5"),
        ("99", "Exact", "", ServerTimeout, "Timeout: Too large resource version: 99, current: 5"),
        ("", "Exact", "", Invalid, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("0", "Exact", "", Invalid, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ("1", "Newest", "", Invalid, 'Unsupported value: "Newest"'),
        ("x1", "", "", BadRequest, 'invalid resource version: resourceVersion: Invalid value: "x1"'),
        ("9" * 5000, "", "", BadRequest, "value out of range"),
        ("9" * 5000, "Exact", "", BadRequest, "value out of range"),
        (str(2**64), "", "", BadRequest, 'ParseUint: parsing "18446744073709551616": value out of range'),
        ("", "", "%%%", BadRequest, "continue key is not valid"),
        (
            "",
            "",
            encode_token(10**400, "a"),
            BadRequest,
            "into Go struct field continueToken.rv of type int64",
        ),
        (
            "",
            "",
            encode_token(2**63, "a"),
            BadRequest,
            "json: cannot unmarshal number 9223372036854775808 into",
        ),
        ("", "", encode_token(99, "a"), ServerTimeout, "Too large resource version: 99, current: 5"),
        ("", "", encode_token(0, "a"), BadRequest, "incorrect encoded start resourceVersion"),
        ("", "", encode_token(3, ""), BadRequest, "encoded start key empty"),
        ("3", "", encode_token(3, "a"), BadRequest, "specifying resource version is not allowed"),
    ],
)
def test_what_makes_no_sense_is_refused(
    version: str, match: str, continue_: str, error: type[ApiError], message: str
) -> None:
    with pytest.raises(error) as refusal:
        ask(filled(4), version=version, match=match, continue_=continue_)
    assert message in refusal.value.message


def test_a_page_whose_instant_is_forgotten_expires_and_offers_to_go_on_without_it() -> None:
    store = filled(6, history=3)
    listing = ask(store, limit=2)
    for _ in range(20):
        put(store, "n005")
    with pytest.raises(Expired, match="The provided continue parameter is too old") as refusal:
        ask(store, limit=2, continue_=listing.continue_)
    rest = ask(store, continue_=refusal.value.details["continue"])
    assert names(rest) == ["n002", "n003", "n004", "n005"]


def test_an_exact_list_of_a_forgotten_instant_expires() -> None:
    store = filled(20, history=3)
    with pytest.raises(Expired, match="The resourceVersion for the provided list is too old"):
        ask(store, version="2", match="Exact")


def test_a_token_can_be_read_back() -> None:
    assert decode_token(encode_token(17, "a/n\0")) == (17, "a/n\0")


async def test_a_continue_token_expires_after_the_interval_of_compaction() -> None:
    clock = FakeClock()
    server = Server(clock)
    api, kind = LocalApi(server), load("", "v1", "Namespace")
    for name in "abc":
        await api.create(kind, "", {"metadata": {"name": name}})
    token = (await api.list(kind, limit=1)).continue_
    clock.advance(299)
    assert [each.key.name for each in (await api.list(kind, limit=1, continue_=token)).items] == ["b"]
    clock.advance(1)
    await api.create(kind, "", {"metadata": {"name": "bb"}})
    with pytest.raises(Expired) as refused:
        await api.list(kind, continue_=token)
    rest = await api.list(kind, continue_=str(refused.value.details["continue"]))
    assert [each.key.name for each in rest.items] == ["b", "bb", "c"]
    server.compaction_interval = timedelta(hours=1)
    assert len((await api.list(kind, continue_=token)).items) == 2
