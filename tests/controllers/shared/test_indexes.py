"""Cache indexes by controllerRef."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from steersman.api.kinds import PODS, REPLICASETS, ObjectMeta, OwnerReference, Pod
from steersman.controllers.deployment import controller
from steersman.controllers.shared.indexes import controlled_by, orphans_in
from steersman.testing.decision_driver import StaticCaches
from tests.harness.workloads import deployment, owned_by, replicaset


def test_objects_are_found_by_their_controller() -> None:
    one, two = deployment(name="one"), deployment(name="two")
    mine, other = replicaset(one, "v1"), replicaset(two, "v2")
    cache = StaticCaches(controller, mine, other)[REPLICASETS]
    assert controlled_by(cache, one) == [mine]


def test_an_owner_that_does_not_control_is_no_controller() -> None:
    one = deployment(name="one")
    rs = replicaset(None)
    merely = replace(owned_by(one), controller=False)
    merely_owned = replace(rs, metadata=replace(rs.metadata, ownerReferences=(merely,)))
    cache = StaticCaches(controller, merely_owned)[REPLICASETS]
    assert controlled_by(cache, one) == []
    assert orphans_in(cache, "default") == [merely_owned]


def test_a_reference_from_another_namespace_means_nothing() -> None:
    one = deployment(name="one")
    rs = replicaset(one)
    afar = replace(rs, metadata=replace(rs.metadata, namespace="elsewhere"))
    assert controlled_by(StaticCaches(controller, afar)[REPLICASETS], one) == []


def test_orphans_are_found_by_namespace() -> None:
    orphan, mine = replicaset(None, "v1"), replicaset(deployment(), "v2")
    afar = replace(orphan, metadata=replace(orphan.metadata, namespace="elsewhere"))
    cache = StaticCaches(controller, orphan, mine, afar)[REPLICASETS]
    assert orphans_in(cache, "default") == [orphan]
    assert orphans_in(cache, "elsewhere") == [afar]


@pytest.mark.parametrize(
    ("kind", "name", "uid", "namespace", "found"),
    [
        ("ReplicaSet", "web-v1", "uid", "default", True),
        ("StatefulSet", "web-v1", "uid", "default", False),
        ("ReplicaSet", "other", "uid", "default", False),
        ("ReplicaSet", "web-v1", "other", "default", False),
        ("ReplicaSet", "web-v1", "uid", "elsewhere", False),
    ],
)
def test_an_object_is_its_controllers_by_kind_name_and_uid(
    kind: str, name: str, uid: str, namespace: str, found: bool
) -> None:
    rs = replicaset(deployment())
    owner = replace(rs, metadata=replace(rs.metadata, name="web-v1", uid="uid"))
    reference = OwnerReference(apiVersion="apps/v1", kind=kind, name=name, uid=uid, controller=True)
    pod = Pod(metadata=ObjectMeta(name="p", namespace=namespace, ownerReferences=(reference,)))
    cache = StaticCaches(controller, pod)[PODS]
    assert controlled_by(cache, owner) == ([pod] if found else [])
    assert orphans_in(cache, namespace) == []
