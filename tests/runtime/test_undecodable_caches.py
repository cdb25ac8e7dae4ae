"""Caches with objects that cannot be decoded: a decision that looks inside fails, and runs again once they can be."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import pytest

from steersman.api.kinds import PODS, Object, ObjectMeta, Pod, PodSpec
from steersman.api.kinds.config import CONFIGMAPS
from steersman.api.scheme import Key, encode_hook
from steersman.intent.controller import Caches, Controller, Watch
from steersman.intent.undecodable import Undecodable, is_decodable, stand_in
from steersman.intent.verdict import Rest, Verdict
from steersman.runtime.decision_driver import StaticCaches
from steersman.runtime.undecodable_caches import UndecodableCaches
from steersman.sim import faults
from steersman.testing.cluster import Cluster

ERROR = "Expected `int`, got `str`"
META = ObjectMeta(namespace="ns", name="odd", uid="odd", labels={"app": "web"})


def by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.nodeName,)


def by_neighbour(pod: Pod) -> Iterable[Key]:
    return (Key(pod.metadata.namespace, pod.spec.nodeName),)


def by_label(pod: Pod) -> Iterable[str]:
    return (pod.metadata.labels.get("app", ""),)


async def never(seen: object, now: datetime) -> Verdict:
    raise AssertionError("not decided here")


INDEXED = Controller(
    name="indexed",
    watches=(Watch(PODS, indexes={"node": by_node, "neighbour": by_neighbour, "label": by_label}),),
    decide=never,
    workers=1,
)


def caches() -> UndecodableCaches:
    found = StaticCaches(
        INDEXED, Pod(metadata=ObjectMeta(namespace="ns", name="fine"), spec=PodSpec(nodeName="n1"))
    )
    found.put_undecodable(PODS, META, ERROR)
    return UndecodableCaches(found)


def names(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


# -- objects that stand in ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "look",
    [
        lambda pod: pod.spec.nodeName,
        lambda pod: bool(pod.status),
        lambda pod: pod.spec == PodSpec(),
        lambda pod: pod == Pod(metadata=META),
        lambda pod: list(pod.spec),
        lambda pod: len(pod.spec),
        lambda pod: f"{pod.spec}",
        lambda pod: "a" in pod.spec,
        lambda pod: msgspec.json.encode(pod, enc_hook=encode_hook),
    ],
)
def test_every_look_inside_says_which_object_cannot_be_decoded(look: Any) -> None:
    with pytest.raises(Undecodable, match=r"^Pod ns/odd cannot be decoded: Expected `int`, got `str`$"):
        look(stand_in(PODS, META, ERROR))


def test_the_metadata_is_there() -> None:
    pod = stand_in(PODS, META, ERROR)
    assert (pod.metadata, pod.key) == (META, Key("ns", "odd"))
    assert not is_decodable(pod)
    assert is_decodable(Pod(metadata=META))
    assert is_decodable(stand_in(PODS.as_(Object), META, ERROR)), "there is nothing else to decode"


# -- caches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "value", "found"),
    [
        ("node", "n1", ["fine", "odd"]),
        ("node", "n2", ["odd"]),
        ("neighbour", Key("ns", "n1"), ["fine", "odd"]),
        ("neighbour", Key("other", "n1"), []),
        ("label", "web", ["odd"]),
        ("label", "", ["fine"]),
    ],
)
def test_an_object_is_under_every_value_that_it_might_have(
    index: str, value: str | Key, found: list[str]
) -> None:
    assert names(caches()[PODS].by(index, value)) == found


def test_an_object_that_cannot_be_decoded_is_not_absent() -> None:
    shown = caches()
    assert names(shown[PODS].list("ns")) == ["fine", "odd"]
    fine, odd = shown[PODS].get(Key("ns", "fine")), shown[PODS].get(Key("ns", "odd"))
    assert fine is not None
    assert odd is not None
    assert (fine.spec.nodeName, is_decodable(odd)) == ("n1", False)
    assert shown[PODS].get(Key("ns", "none")) is None


def test_a_round_that_is_shown_no_such_object_need_not_run_again() -> None:
    shown = caches()
    shown[PODS].get(Key("ns", "fine"))
    list(shown[PODS].by("label", ""))
    assert not shown.shown
    list(shown[PODS].by("node", "n2"))
    assert shown.shown


# -- rounds ---------------------------------------------------------------------------------------


def counting(verdicts: list[str]) -> Controller[Any]:
    """A controller that counts the pods on a node for each ConfigMap."""

    def observe(caches: Caches, key: Key) -> list[Pod]:
        return list(caches[PODS].by("node", key.name))

    async def decide(seen: list[Pod], now: datetime) -> Verdict:
        verdicts.append(",".join(sorted({pod.spec.nodeName for pod in seen})))
        return Rest("counted")

    return Controller(
        name="counting-controller",
        watches=(
            Watch(CONFIGMAPS),
            Watch(PODS, to=lambda caches, change: (), indexes={"node": by_node}),
        ),
        observe=observe,
        decide=decide,
        workers=1,
    )


def test_a_round_waits_for_an_object_that_cannot_be_decoded_and_runs_at_once_when_it_can() -> None:
    verdicts: list[str] = []
    fault = faults.undecodable_events("pods", 1, seconds=100)
    with Cluster(nodes=1, controllers=[counting(verdicts)], faults=[fault]) as cluster:
        containers = [{"name": "main", "image": "app:1"}]
        spec = {"nodeName": "node-9", "containers": containers}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "node-9"}})
        cluster.advance(seconds=99)
        assert verdicts == []
        (last,) = [
            each for each in cluster.history() if "cannot be decoded" in str(each) and "node-9" in str(each)
        ][-1:]
        assert "Pod default/web cannot be decoded: expected an object, got nonsense" in str(last)
        cluster.advance(seconds=1)
        assert verdicts == ["node-9"]
