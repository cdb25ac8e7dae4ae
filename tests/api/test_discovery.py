"""What is served, and what could not be learned of it."""

from __future__ import annotations

from steersman.api.discovery import Discovered, Missing, Resource, joined
from steersman.api.partial_object import Partial, metadata_only
from steersman.api.scheme import kind_of

V2 = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("get",))
V1 = Resource("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("get",))
PODS = Resource("", "v1", "Pod", "pods", True, ("delete", "get", "list"))


def test_each_resource_is_preferred_in_the_version_that_comes_first() -> None:
    assert Discovered((V2, PODS, V1)).preferred == (V2, PODS)


def test_a_kind_is_found_in_every_version_it_is_served_in() -> None:
    found = Discovered((V2, PODS, V1))
    assert found.find("autoscaling/v1", "HorizontalPodAutoscaler") is V1
    assert found.find("v1", "Pod") is PODS
    assert found.find("autoscaling/v3", "HorizontalPodAutoscaler") is None


def test_what_could_not_be_learned_is_named_in_upstreams_words() -> None:
    found = joined(
        (
            Discovered(failed=(Missing("b.example.com/v1", "away"),)),
            Discovered((PODS,), (Missing("a.example.com/v1", "slow"),), ("x/y/z",)),
        )
    )
    assert found.complaint == (
        "unable to retrieve the complete list of server APIs: a.example.com/v1: slow, b.example.com/v1: away"
    )
    assert found.lacks("a.example.com")
    assert not found.lacks("c.example.com")
    assert found.malformed == ("x/y/z",)
    assert Discovered((PODS,)).complaint == ""


def test_a_resource_can_what_all_of_its_verbs_allow() -> None:
    assert PODS.can("delete", "list")
    assert not PODS.can("delete", "watch")


def test_the_metadata_of_a_resource_is_one_kind_each_time() -> None:
    again = Resource("", "v1", "Pod", "pods", True, ("get",))
    assert again.partial is PODS.partial
    assert metadata_only(PODS.partial)
    assert PODS.partial.type is Partial
    assert not metadata_only(PODS.partial.untyped)


def test_the_type_of_metadata_alone_says_nothing_of_the_kind() -> None:
    try:
        kind_of(Partial())
    except LookupError:
        return
    raise AssertionError("a Partial may be of any kind")
