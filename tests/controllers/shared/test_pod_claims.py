"""The claims of a pod: those it names, and those that are made for its ephemeral volumes."""

from __future__ import annotations

import pytest

from steersman.api.kinds import (
    EphemeralVolumeSource,
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    Volume,
)
from steersman.api.kinds.storage import PersistentVolumeClaim
from steersman.api.scheme import Key
from steersman.controllers.shared.pod_claims import claim_keys, claim_names, has_claim, is_made_for

NAMED = Volume(name="data", persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName="shared"))
EPHEMERAL = Volume(name="scratch", ephemeral=EphemeralVolumeSource())
NEITHER = Volume(name="temp")


def pod(*volumes: Volume, uid: str = "pod-uid") -> Pod:
    return Pod(metadata=ObjectMeta(name="web", namespace="shop", uid=uid), spec=PodSpec(volumes=volumes))


def claim(
    name: str, owner: str = "", namespace: str = "shop", *, controller: bool = True
) -> PersistentVolumeClaim:
    owners = (OwnerReference(kind="Pod", name="web", uid=owner, controller=controller),) if owner else ()
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace, ownerReferences=owners))


def test_a_pod_is_indexed_by_all_its_claims() -> None:
    assert list(claim_names(pod(NAMED, NEITHER, EPHEMERAL))) == ["shared", "web-scratch"]
    assert list(claim_keys(pod(NAMED, EPHEMERAL))) == [Key("shop", "shared"), Key("shop", "web-scratch")]
    assert list(claim_keys(pod(NEITHER))) == []
    assert list(claim_keys(pod())) == []


@pytest.mark.parametrize(
    ("found", "made"),
    [
        (claim("web-scratch", "pod-uid"), True),
        (claim("web-scratch", "earlier"), False),
        (claim("web-scratch", "pod-uid", controller=False), False),
        (claim("web-scratch", "pod-uid", "other"), False),
        (claim("web-scratch"), False),
    ],
)
def test_a_claim_is_made_for_the_pod_that_controls_it(found: PersistentVolumeClaim, made: bool) -> None:
    assert is_made_for(found, pod(EPHEMERAL)) == made
    assert has_claim(pod(EPHEMERAL), found) == made


def test_a_claim_that_is_named_may_have_any_owner() -> None:
    assert has_claim(pod(NAMED), claim("shared"))
    assert has_claim(pod(NEITHER, NAMED), claim("shared", "another"))
    assert not has_claim(pod(NAMED), claim("data"))


def test_ephemeral_volumes_can_be_left_out() -> None:
    assert not has_claim(pod(EPHEMERAL), claim("web-scratch", "pod-uid"), ephemeral=False)
    assert has_claim(pod(EPHEMERAL, NAMED), claim("shared"), ephemeral=False)
