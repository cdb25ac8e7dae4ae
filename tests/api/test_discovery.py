"""What is served, and what could not be learned of it."""

from __future__ import annotations

from steersman.api.discovery import ApiResource, DiscoveryResult, FailedGroupVersion, merge_results
from steersman.api.partial_object import PartialObject, metadata_only
from steersman.api.scheme import kind_of

V2 = ApiResource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("get",))
V1 = ApiResource("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("get",))
PODS = ApiResource("", "v1", "Pod", "pods", True, ("delete", "get", "list"))


def test_each_resource_is_preferred_in_the_version_that_comes_first() -> None:
    assert DiscoveryResult((V2, PODS, V1)).preferred == (V2, PODS)


def test_a_kind_is_found_in_every_version_it_is_served_in() -> None:
    found = DiscoveryResult((V2, PODS, V1))
    assert found.find("autoscaling/v1", "HorizontalPodAutoscaler") is V1
    assert found.find("v1", "Pod") is PODS
    assert found.find("autoscaling/v3", "HorizontalPodAutoscaler") is None


def test_what_could_not_be_learned_is_named_in_upstreams_words() -> None:
    found = merge_results(
        (
            DiscoveryResult(failed=(FailedGroupVersion("b.example.com/v1", "away"),)),
            DiscoveryResult((PODS,), (FailedGroupVersion("a.example.com/v1", "slow"),), ("x/y/z",)),
        )
    )
    assert found.error_message == (
        "unable to retrieve the complete list of server APIs: a.example.com/v1: slow, b.example.com/v1: away"
    )
    assert found.is_incomplete("a.example.com")
    assert not found.is_incomplete("c.example.com")
    assert found.malformed == ("x/y/z",)
    assert DiscoveryResult((PODS,)).error_message == ""


def test_a_resource_can_what_all_of_its_verbs_allow() -> None:
    assert PODS.supports("delete", "list")
    assert not PODS.supports("delete", "watch")


def test_the_metadata_of_a_resource_is_one_kind_each_time() -> None:
    again = ApiResource("", "v1", "Pod", "pods", True, ("get",))
    assert again.partial is PODS.partial
    assert metadata_only(PODS.partial)
    assert PODS.partial.type is PartialObject
    assert not metadata_only(PODS.partial.untyped)


def test_the_type_of_metadata_alone_says_nothing_of_the_kind() -> None:
    try:
        kind_of(PartialObject())
    except LookupError:
        return
    raise AssertionError("a Partial may be of any kind")
