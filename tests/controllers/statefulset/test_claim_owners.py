"""The owners of claims in upstream's tables: each retention policy with each combination of references.

The set is web with the uid web-uid; its pods are web-0, web-1 … with the uids web-0-uid, web-1-uid …
"""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from steersman.api.kinds import PODS, LabelSelector, ObjectMeta, OwnerReference
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.kinds.storage import PersistentVolumeClaim
from steersman.api.meta import owner_reference
from steersman.controllers.statefulset.claims import (
    conflicting_claims,
    has_stale_claim,
    missing_claims,
    new_owners,
)
from tests.harness.statefulsets import member, stateful

CLAIM = "data-web-1"


def reference(
    api_version: str, kind: str, name: str, uid: str, controller: bool | None = None
) -> OwnerReference:
    return OwnerReference(apiVersion=api_version, kind=kind, name=name, uid=uid, controller=controller)


def of_pod(uid: str = "web-1-uid", controller: bool | None = True) -> OwnerReference:
    return reference("v1", "Pod", "web-1", uid, controller)


def of_set(uid: str = "web-uid", controller: bool | None = True) -> OwnerReference:
    return reference("apps/v1", "StatefulSet", "web", uid, controller)


def claim(name: str, *owners: OwnerReference) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, ownerReferences=owners))


# -- whether the owners match the policy --------------------------------------------------------

GUESTS = (reference("v1", "Pod", "rand1", "rand1-uid"), reference("v1", "Pod", "rand2", "rand2-uid"))
POLICIES = {
    # policy, replicas, ordinal: the owner the claim is to have
    "retain": ("RR", 0, 0, ""),
    "with the set": ("RD", 0, 0, "set"),
    "when scaled, condemned": ("DR", 2, 2, "pod"),
    "when scaled, stays": ("DR", 2, 1, ""),
    "both, condemned": ("DD", 2, 2, "pod"),
    "both, stays": ("DD", 2, 1, "set"),
}


@pytest.mark.parametrize("guests", [(), GUESTS], ids=["alone", "with guests"])
@pytest.mark.parametrize(
    "has", [(), ("pod",), ("set",), ("pod", "set")], ids=lambda has: "+".join(has) or "none"
)
@pytest.mark.parametrize("policy", POLICIES)
def test_owners_are_up_to_date_where_they_are_those_of_the_policy(
    policy: str, has: tuple[str, ...], guests: tuple[OwnerReference, ...]
) -> None:
    keep, replicas, ordinal, needs = POLICIES[policy]
    set_ = stateful(replicas, claims=("data",), keep=keep)
    pod = member(set_, ordinal)
    known = {"pod": owner_reference(pod, PODS), "set": owner_reference(set_, STATEFULSETS)}
    owners = (*(known[one] for one in has), *guests)
    assert (new_owners(set_, pod, owners) is None) is (has == ((needs,) if needs else ()))


@pytest.mark.parametrize(
    ("keep", "owners", "matches"),
    [
        pytest.param("DD", (of_pod(),), True, id="the pod controls"),
        pytest.param("DD", (of_pod(controller=None),), False, id="the pod only owns"),
        pytest.param("DD", (of_pod("stale"),), True, id="a former pod is left alone"),
        pytest.param(
            "DD",
            (of_pod(), reference("v1", "Pod", "Random", "random", True)),
            False,
            id="the pod beside another controller",
        ),
        pytest.param("RD", (of_set(),), True, id="the set controls"),
        pytest.param(
            "RD",
            (reference("appsv1", "StatefulSet", "web", "web-uid"),),
            False,
            id="the set only owns, and in another version",
        ),
        pytest.param("RD", (of_set("stale"),), True, id="a former set is left alone"),
        pytest.param(
            "RD",
            (of_set(), reference("apps/v1", "StatefulSet", "Random", "random", True)),
            False,
            id="the set beside another controller",
        ),
    ],
)
def test_only_a_controller_is_the_owner_of_the_policy(
    keep: str, owners: tuple[OwnerReference, ...], matches: bool
) -> None:
    # The set has one replica, so that the pod web-1 is condemned.
    set_ = stateful(1, claims=("data",), keep=keep)
    assert (new_owners(set_, member(set_, 1), owners) is None) is matches


@pytest.mark.parametrize(
    ("keep", "ordinal", "owners", "matches"),
    [
        ("RD", 1, (of_set(),), True),
        ("RD", 1, (of_set(controller=None),), False),
        ("RD", 1, (of_set(controller=False),), False),
        ("DR", 8, (reference("v1", "Pod", "web-8", "web-8-uid", True),), True),
        ("DR", 8, (reference("v1", "Pod", "web-8", "web-8-uid"),), False),
        ("RR", 1, (), True),
        ("RR", 1, (reference("v1", "pod", "pod", "not-matching"),), True),
    ],
)
def test_an_owner_of_the_policy_that_does_not_control_is_made_to(
    keep: str, ordinal: int, owners: tuple[OwnerReference, ...], matches: bool
) -> None:
    set_ = stateful(5, claims=("data",), keep=keep)
    assert (new_owners(set_, member(set_, ordinal), owners) is None) is matches


# -- the owners that are written ----------------------------------------------------------------

EXTRA = reference("custom/v1", "random", "random", "abc")
UNKNOWN = reference("custom/v1", "Unknown", "unknown", "xyz", True)
WRITTEN = {
    # policy, ordinal: the owner that controls afterwards, others that do already
    "retain": ("RR", 1, "", ()),
    "delete with set": ("RD", 1, "set", ()),
    "delete with scaledown, not condemned": ("DR", 1, "", ()),
    "delete on scaledown, condemned": ("DR", 8, "pod", ()),
    "delete on both, not condemned": ("DD", 1, "set", ()),
    "delete on both, condemned": ("DD", 8, "pod", ()),
    "unexpected controller": ("DD", 8, "", (UNKNOWN,)),
}


@pytest.mark.parametrize(
    ("has_pod", "has_set", "extra"),
    tuple(product((False, True), repeat=3)),
    ids=lambda given: "y" if given else "n",
)
@pytest.mark.parametrize("policy", WRITTEN)
def test_owners_are_written_as_the_policy_says(
    policy: str, has_pod: bool, has_set: bool, extra: bool
) -> None:
    keep, ordinal, controls, others = WRITTEN[policy]
    set_ = stateful(5, claims=("data",), keep=keep)
    pod = member(set_, ordinal)
    owners = (
        *((owner_reference(pod, PODS),) if has_pod else ()),
        *((owner_reference(set_, STATEFULSETS),) if has_set else ()),
        *((EXTRA,) if extra else ()),
        *others,
    )
    found = new_owners(set_, pod, owners)
    after = owners if found is None else found
    ours = {pod.metadata.uid: "pod", set_.metadata.uid: "set"}
    assert [ours[one.uid] for one in after if one.uid in ours] == ([controls] if controls else [])
    assert all(one.controller for one in after if one.uid in ours)
    assert [one for one in after if one.uid not in ours] == [one for one in owners if one.uid not in ours]


ELSE = reference("someone", "Else", "foo", "")
NAMESAKE = reference("someone", "else", "web", "456")
CONTROLS = replace(of_set(), blockOwnerDeletion=True)


@pytest.mark.parametrize(
    ("owners", "written"),
    [
        pytest.param((of_set(), ELSE), None, id="as it should be"),
        pytest.param((of_set(controller=None),), (CONTROLS,), id="does not control"),
        pytest.param((NAMESAKE,), (NAMESAKE, CONTROLS), id="another of the name"),
        pytest.param((), (CONTROLS,), id="none"),
        # Upstream would remove them, but never comes to it: what a former set owns is left alone.
        pytest.param((of_set(""),), None, id="controls, without a uid"),
        pytest.param((of_set("", controller=None),), None, id="without a uid"),
    ],
)
def test_a_claim_that_stays_is_controlled_by_the_set(
    owners: tuple[OwnerReference, ...], written: tuple[OwnerReference, ...] | None
) -> None:
    set_ = stateful(1, claims=("data",), keep="DD")
    assert new_owners(set_, member(set_, 0), owners) == written


# -- other controllers --------------------------------------------------------------------------


def custom(controller: bool | None) -> OwnerReference:
    return reference("chipmunks/v1", "CustomController", "simon", "other-uid", controller)


UNEXPECTED = {
    "custom controller": ((custom(True),), True),
    "custom non-controller": ((custom(False),), False),
    "custom, unspecified": ((custom(None),), False),
    "another pod": ((reference("v1", "Pod", "simon", "other-uid", True),), True),
    "another set": ((reference("apps/v1", "Set", "simon", "other-uid", True),), True),
    "the set": ((of_set(),), False),
    "a former set": ((of_set("stale-uid"),), True),
    "the pod": ((of_pod(),), False),
    "a former pod": ((of_pod("stale-uid"),), True),
    "the pod and another controller": ((of_pod(), custom(True)), True),
    "the pod and another owner": ((of_pod(), custom(False)), False),
}


@pytest.mark.parametrize("keep", ["", "DR", "RD", "DD"])
@pytest.mark.parametrize("owners", UNEXPECTED)
def test_another_controller_is_told_of_where_claims_are_deleted(owners: str, keep: str) -> None:
    set_ = stateful(3, claims=("data",), keep=keep)
    references, unexpected = UNEXPECTED[owners]
    found = conflicting_claims(set_, member(set_, 1), {CLAIM: claim(CLAIM, *references)})
    assert list(found) == ([CLAIM] if unexpected and keep else [])


# -- stale claims -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "matches"),
    [
        (reference("v1", "Pod", "web-1", "web-1-uid"), True),
        (reference("v1", "Pod", "web-1", "not-matching"), True),
        (reference("v1", "Pod", "joan", "web-1-uid"), False),
        (reference("beta2", "Pod", "web-1", "web-1-uid"), False),
    ],
)
def test_a_reference_names_a_pod_by_version_kind_and_name(owner: OwnerReference, matches: bool) -> None:
    set_ = stateful(3, claims=("data",), keep="DR")
    assert has_stale_claim(set_, 1, {CLAIM: claim(CLAIM, owner)}) is matches


@pytest.mark.parametrize(
    ("states", "stale"),
    [
        (("missing", "missing"), False),
        ((), False),
        (("missing", "exists"), False),
        (("stale", "exists"), True),
        (("stale", "missing"), True),
        (("owned", "stale"), True),
        # A pod that does not exist has no uid, so any reference to its name is a former pod's.
        (("owned",), True),
    ],
)
def test_a_pod_waits_for_the_deletion_of_any_stale_claim(states: tuple[str, ...], stale: bool) -> None:
    templates = tuple(f"claim{index}" for index in range(len(states)))
    set_ = stateful(4, claims=templates, keep="DR")
    owners = {"exists": (), "stale": (of_pod("stale"),), "owned": (of_pod(),)}
    existing = {
        f"{template}-web-1": claim(f"{template}-web-1", *owners[state])
        for template, state in zip(templates, states, strict=True)
        if state != "missing"
    }
    assert has_stale_claim(set_, 1, existing) is stale


# -- new claims ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "template", "labels"),
    [
        ({}, {}, {}),
        ({"test": "test"}, {}, {"test": "test"}),
        ({"name": "foo"}, {"test": "test"}, {"test": "test", "name": "foo"}),
        ({"test": "foo"}, {"test": "test"}, {"test": "foo"}),
    ],
)
def test_a_claim_has_the_labels_of_its_template_and_of_the_selector_first(
    selector: dict[str, str], template: dict[str, str], labels: dict[str, str]
) -> None:
    set_ = stateful(1, claims=("data",))
    (one,) = set_.spec.volumeClaimTemplates
    templates = (replace(one, metadata=replace(one.metadata, labels=template)),)
    spec = replace(set_.spec, selector=LabelSelector(matchLabels=selector), volumeClaimTemplates=templates)
    (made,) = missing_claims(replace(set_, spec=spec), 0, {})
    assert (made.metadata.name, made.metadata.labels) == ("data-web-0", labels)
