"""Rounds of several claims at once: no two choose one volume, none writes to what another writes to, and no claim waits in vain."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.errors import Conflict
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.api.scheme import Key
from steersman.controllers.persistentvolume import BUSY, controller, decide, observe
from steersman.controllers.persistentvolume.memory import REMINDER, Memory
from steersman.intent.actions import Action, Emit, Update
from steersman.intent.controller import Change
from steersman.intent.verdict import Wake
from steersman.testing.decision_driver import StaticCaches, walk
from tests.controllers.persistentvolume.test_rows import NOW, caches_of, claim, volume


def claims(*names: str) -> list[PersistentVolumeClaim]:
    return [claim([name, f"uid-{name}", "1Gi", "Pending"]) for name in names]


def volumes(*names: str) -> list[PersistentVolume]:
    return [volume([name, "1Gi", "Available", "Retain"], "") for name in names]


def memory_in(caches: StaticCaches) -> Memory:
    assert isinstance(caches.memory, Memory)
    return caches.memory


def begin(caches: StaticCaches, key: Key) -> tuple[Any, Action[Any]]:
    """Begin a round; returns the round and the first action, which is not answered yet."""
    seen = observe(caches, key)
    assert seen is not None
    steps = decide(seen, NOW).__await__()
    return steps, steps.send(None)


def test_two_rounds_at_once_choose_two_volumes() -> None:
    caches = caches_of(*claims("a", "b"), *volumes("one", "two"))
    rounds = [begin(caches, Key("default", name)) for name in ("a", "b")]
    chosen = [action.target.metadata.name for _, action in rounds if isinstance(action, Update)]
    assert chosen == ["one", "two"]


def test_a_volume_that_a_round_takes_is_not_made_available_meanwhile() -> None:
    fresh = replace(volumes("one")[0], status=replace(volumes("one")[0].status, phase="Pending"))
    caches = caches_of(*claims("a"), fresh)
    steps, _ = begin(caches, Key("default", "a"))
    seen = observe(caches, Key("", "one"))
    assert seen is not None
    actions, verdict = walk(decide(seen, NOW))
    assert actions == []
    assert isinstance(verdict, Wake)
    steps.close()


def test_a_round_waits_for_another_that_writes_to_its_volume() -> None:
    named = claim(["b", "uid-b", "1Gi", "Pending", "volume:one"])
    caches = caches_of(*claims("a"), named, *volumes("one"))
    steps, _ = begin(caches, Key("default", "a"))
    seen = observe(caches, Key("default", "b"))
    assert seen is not None
    assert walk(decide(seen, NOW)) == ([], BUSY)
    steps.close()
    assert not memory_in(caches).is_written([Key("", "one")]), "a round that ends writes no more"


def test_a_volume_is_free_again_if_its_claim_is_gone_or_its_version_changes() -> None:
    first, second = claims("a", "b")
    (one,) = volumes("one")
    for gone in (True, False):
        caches = caches_of(first, second, one)
        seen = observe(caches, first.key)
        assert seen is not None
        try:
            walk(decide(seen, NOW), {Update: Conflict("another version")})
        except Conflict:
            pass
        waiting = observe(caches, second.key)
        assert waiting is not None
        assert waiting.volume is None, "the claim that chose it will try again"
        if gone:
            caches.remove(first)
        else:
            caches.put(replace(one, metadata=replace(one.metadata, resourceVersion="2")))
        waiting = observe(caches, second.key)
        assert waiting is not None
        assert waiting.volume is not None


def test_each_volume_wakes_another_claim_that_waits() -> None:
    caches = caches_of(*claims("a", "b", "c"))
    for name in ("a", "b", "c"):
        seen = observe(caches, Key("default", name))
        assert seen is not None
        walk(decide(seen, NOW))
    woken = []
    to = controller.watches[1].to
    for one in volumes("one", "two", "three", "four"):
        caches.put(one)
        woken += [key.name for key in to(caches, Change(None, one))]
    assert woken == ["a", "b", "c"], "the one that has waited longest first, and nobody twice"


def test_a_volume_that_is_too_small_wakes_nobody() -> None:
    large = claim(["large", "uid-large", "5Gi", "Pending"])
    caches = caches_of(large)
    seen = observe(caches, large.key)
    assert seen is not None
    walk(decide(seen, NOW))
    (one,) = volumes("one")
    caches.put(one)
    assert list(controller.watches[1].to(caches, Change(None, one))) == []


def test_an_event_is_repeated_when_it_changes_or_is_old() -> None:
    memory, key = Memory(), Key("default", "a")
    assert memory.is_news(key, ("Reason", "message"), 0.0)
    assert not memory.is_news(key, ("Reason", "message"), REMINDER - 1)
    assert memory.is_news(key, ("Reason", "another"), REMINDER - 1)
    assert not memory.is_news(key, ("Reason", "another"), REMINDER)
    assert memory.is_news(key, ("Reason", "another"), 2 * REMINDER)


def test_another_claim_of_the_same_name_has_an_event_of_its_own() -> None:
    first = claim(["a", "uid-first", "1Gi", "Pending"])
    caches = caches_of(first)
    for each in (first, claim(["a", "uid-second", "1Gi", "Pending"])):
        # No round comes between the two claims.
        caches.put(each)
        seen = observe(caches, each.key)
        assert seen is not None
        actions, _ = walk(decide(seen, NOW))
        assert [action.reason for action in actions if isinstance(action, Emit)] == ["FailedBinding"]


def test_what_is_gone_is_forgotten() -> None:
    caches = caches_of(*claims("a"))
    seen = observe(caches, Key("default", "a"))
    assert seen is not None
    walk(decide(seen, NOW))
    memory = memory_in(caches)
    assert memory.is_waiting(Key("default", "a"))
    caches.remove(claims("a")[0])
    assert observe(caches, Key("default", "a")) is None
    assert not memory.is_waiting(Key("default", "a"))
