"""A pod's identity: its name, labels and volumes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.kinds import (
    ObjectMeta,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodTemplateSpec,
    Volume,
)
from steersman.controllers.statefulset.identity import (
    POD_INDEX,
    POD_NAME,
    has_identity,
    has_storage,
    identity_patch,
    is_member,
    new_pod,
    ordinal_of,
)
from tests.harness.statefulsets import member, stateful
from tests.harness.workloads import LABELS


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("web-0", 0),
        ("web-12", 12),
        ("a-b-3", 3),
        ("web-01", 1),
        ("web", -1),
        ("web-", -1),
        ("web-x", -1),
        ("web-1x", -1),
        ("web-2147483647", 2**31 - 1),
        ("web-2147483648", -1),
        ("web-" + "9" * 5000, -1),
        ("-7", 7),
        ("1-bar", -1),
    ],
)
def test_a_name_ends_in_an_ordinal(name: str, ordinal: int) -> None:
    assert ordinal_of(name) == ordinal


@pytest.mark.parametrize(
    ("name", "member"), [("web-0", True), ("web-x-0", False), ("web", False), ("webs-0", False)]
)
def test_a_pod_is_a_member_by_its_name(name: str, member: bool) -> None:
    assert is_member(stateful(), Pod(metadata=ObjectMeta(name=name))) is member


def spec_of(template: dict[str, Any], *claims: str, service: str = "svc") -> dict[str, Any]:
    set_ = stateful(claims=claims)
    set_ = replace(set_, spec=replace(set_.spec, serviceName=service))
    raw = msgspec.Raw(msgspec.json.encode(template))
    made = new_pod(set_, 3, PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=raw), "rev")
    found: dict[str, Any] = msgspec.json.decode(made.spec)
    return found


def test_a_new_pod_carries_what_its_ordinal_decides() -> None:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=LABELS, annotations={"a": "b"}, finalizers=("x/y",)),
        spec=msgspec.Raw(b"{}"),
    )
    made = new_pod(stateful(), 3, template, "rev")
    assert (made.metadata.name, made.metadata.generateName) == ("web-3", "web-")
    assert made.metadata.labels == {
        **LABELS,
        POD_NAME: "web-3",
        POD_INDEX: "3",
        "controller-revision-hash": "rev",
    }
    assert (made.metadata.annotations, made.metadata.finalizers) == ({"a": "b"}, ("x/y",))
    assert [(owner.kind, owner.controller) for owner in made.metadata.ownerReferences] == [
        ("StatefulSet", True)
    ]
    assert msgspec.json.decode(made.spec) == {"hostname": "web-3", "subdomain": "svc"}


def test_what_is_in_the_template_goes_along_untouched() -> None:
    assert spec_of({"unknown": {"a": [1]}, "hostname": "x", "subdomain": "y"}, service="") == {
        "hostname": "web-3",
        "unknown": {"a": [1]},
    }


def test_claims_come_before_volumes_and_in_the_place_of_their_namesakes() -> None:
    found = spec_of({"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]}, "data")
    assert found["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}},
        {"name": "tmp", "emptyDir": {}},
    ]


def test_a_pod_that_lost_its_name_is_told_its_name() -> None:
    set_ = stateful()
    pod = member(set_, 1, labels=LABELS)
    assert not has_identity(set_, pod)
    assert identity_patch(set_, pod) == {
        "metadata": {"uid": "web-1-uid", "labels": {POD_NAME: "web-1", POD_INDEX: "1"}}
    }


def test_a_pod_whose_volume_is_not_its_claim_has_no_storage() -> None:
    set_ = stateful(claims=("data",))
    assert has_storage(set_, member(set_, 1))
    stranger = member(stateful(), 1)
    assert not has_storage(set_, stranger)
    assert identity_patch(set_, stranger)["spec"] == {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]
    }


def test_a_pod_that_is_numbered_another_way_is_not_itself() -> None:
    set_ = stateful()
    assert not has_identity(set_, member(set_, 1, name="web-01", labels={POD_NAME: "web-01"}))


SET = stateful(claims=("data",))
MEMBER = member(SET, 1)


@pytest.mark.parametrize(
    ("pod", "matches"),
    [
        pytest.param(MEMBER, True, id="a new pod"),
        pytest.param(
            replace(MEMBER, metadata=replace(MEMBER.metadata, name="foo")), False, id="another name"
        ),
        pytest.param(member(SET, 1, labels={POD_NAME: "web-2"}), False, id="another label"),
        pytest.param(member(SET, 1, labels={}), False, id="no label"),
    ],
)
def test_the_identity_of_a_pod_is_its_name_and_label(pod: Pod, matches: bool) -> None:
    assert has_identity(SET, pod) is matches
    if not matches and pod.metadata.name == "web-1":
        labels = {**pod.metadata.labels, **identity_patch(SET, pod)["metadata"]["labels"]}
        assert has_identity(SET, replace(pod, metadata=replace(pod.metadata, labels=labels)))


def with_volumes(*volumes: Volume) -> Pod:
    return replace(MEMBER, spec=replace(MEMBER.spec, volumes=volumes))


@pytest.mark.parametrize(
    ("pod", "matches"),
    [
        pytest.param(MEMBER, True, id="a new pod"),
        pytest.param(with_volumes(), False, id="no volumes"),
        pytest.param(with_volumes(Volume(name="data")), False, id="no claim"),
        pytest.param(
            with_volumes(
                Volume(name="data", persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName="foo"))
            ),
            False,
            id="another claim",
        ),
        pytest.param(replace(MEMBER, metadata=replace(MEMBER.metadata, name="bar")), False, id="no ordinal"),
    ],
)
def test_the_storage_of_a_pod_is_its_claims(pod: Pod, matches: bool) -> None:
    assert has_storage(SET, pod) is matches
    if not matches and pod.metadata.name == "web-1":
        (volume,) = identity_patch(SET, pod)["spec"]["volumes"]
        assert has_storage(SET, with_volumes(msgspec.convert(volume, Volume)))
