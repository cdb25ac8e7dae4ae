"""Volumes that are attached to nodes: their names, plugins and access modes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.kinds import Pod, Volume
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.controllers.shared.volumes import (
    AttachableVolume,
    attachment_name,
    by_inline_volume,
    by_volume,
    csi_volume,
    inline_volume_of,
    is_bound_to,
    is_exclusive,
    volume_named,
    volume_of,
)

Document = dict[str, Any]


def pv(**spec: Any) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": "pv"}, "spec": spec}, PersistentVolume)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, "kubernetes.io/csi/d^h"),
        ({"csi": {"driver": "d", "volumeHandle": "a/b^c"}}, "kubernetes.io/csi/d^a/b^c"),
        ({"cinder": {"volumeID": "c"}}, "kubernetes.io/csi/cinder.csi.openstack.org^c"),
        ({"fc": {"targetWWNs": ["5001", "5002"], "lun": 2}}, "kubernetes.io/fc/[5001 5002]:2"),
        ({"fc": {"targetWWNs": ["5001"], "lun": 0}}, "kubernetes.io/fc/[5001]:0"),
        ({"fc": {"wwids": ["3600"]}}, "kubernetes.io/fc/[3600]"),
        ({"fc": {"targetWWNs": ["5001"]}}, ""),
        ({"hostPath": {"path": "/data"}}, ""),
        ({"iscsi": {"targetPortal": "p", "iqn": "i", "lun": 0}}, "kubernetes.io/iscsi/p:i:0"),
        ({"nfs": {"server": "s", "path": "/"}}, ""),
        ({"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Shared"}}, ""),
    ],
)
def test_a_volume_has_one_name_on_all_nodes(spec: Document, name: str) -> None:
    given = pv(**spec)
    assert list(by_volume(given)) == ([name] if name else [])


def test_a_persistent_volume_is_known_by_its_name_in_events() -> None:
    found = volume_of(pv(csi={"driver": "d", "volumeHandle": "h"}, accessModes=["ReadWriteOnce"]))
    assert found == AttachableVolume(
        "kubernetes.io/csi/d^h", "pv", "kubernetes.io/csi", "d", "h", exclusive=True, pv="pv"
    )
    assert found.qualified_plugin == "kubernetes.io/csi:d"


def test_a_volume_of_a_migrated_plugin_is_marked() -> None:
    found = volume_of(pv(gcePersistentDisk={"pdName": "d"}, accessModes=["ReadWriteMany"]))
    assert found is not None
    assert (found.migrated, found.exclusive, found.driver) == (True, True, "pd.csi.storage.gke.io")


@pytest.mark.parametrize(
    ("modes", "exclusive"),
    [
        ([], False),
        (["ReadWriteOnce"], True),
        (["ReadWriteOncePod"], True),
        (["ReadOnlyMany"], False),
        (["ReadWriteMany"], False),
        (["ReadWriteOnce", "ReadOnlyMany"], False),
    ],
)
def test_one_node_at_a_time_has_a_volume_whose_access_modes_say_so(modes: list[str], exclusive: bool) -> None:
    assert is_exclusive(modes) is exclusive


def test_inline_volumes_are_named_by_the_pods_that_have_them() -> None:
    document = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {
            "volumes": [
                {"name": "a", "awsElasticBlockStore": {"volumeID": "vol-1"}},
                {"name": "b", "fc": {"wwids": ["3600"]}},
                {"name": "c", "csi": {"driver": "lives-as-long-as-its-pod"}},
                {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "e", "azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Shared"}},
            ]
        },
    }
    pod = msgspec.convert(document, Pod)
    assert list(by_inline_volume(pod)) == [
        "kubernetes.io/csi/ebs.csi.aws.com^vol-1",
        "kubernetes.io/fc/[3600]",
    ]


def test_a_fibre_channel_volume_of_a_pod_may_be_on_many_nodes() -> None:
    found = inline_volume_of(msgspec.convert({"name": "b", "fc": {"wwids": ["3600"]}}, Volume), "ns")
    assert found == AttachableVolume("kubernetes.io/fc/[3600]", "b", "kubernetes.io/fc")


@pytest.mark.parametrize(
    ("name", "driver", "handle"),
    [
        ("kubernetes.io/csi/d^h", "d", "h"),
        ("kubernetes.io/csi/d^a/b^c", "d", "a/b^c"),
        ("kubernetes.io/fc/[3600]", "", ""),
    ],
)
def test_a_name_tells_the_driver_and_the_handle(name: str, driver: str, handle: str) -> None:
    found = volume_named(name)
    assert found is not None
    assert (found.name, found.driver, found.handle) == (name, driver, handle)


@pytest.mark.parametrize("name", ["", "volume", "kubernetes.io/csi/d", "kubernetes.io/aws-ebs/vol-1"])
def test_other_names_are_of_no_attachable_volume(name: str) -> None:
    assert volume_named(name) is None


def test_an_attachment_is_named_by_a_hash_of_handle_driver_and_node() -> None:
    # sha256 of "vol01" + "driver01" + "node01"
    assert (
        attachment_name(csi_volume("driver01", "vol01", "pv"), "node01")
        == "csi-6742023a61316c20361490f8a9a57fa3264f6f22d28eca7f5b7503ddc6519b82"
    )


@pytest.mark.parametrize(
    ("phase", "volume_name", "ref_uid", "bound"),
    [
        ("Bound", "pv", "1", True),
        ("Pending", "pv", "1", False),
        ("Lost", "pv", "1", False),
        ("Bound", "", "1", False),
        ("Bound", "other", "1", False),
        ("Bound", "pv", "2", False),
        ("Bound", "pv", None, False),
    ],
)
def test_a_claim_and_a_volume_are_bound_to_each_other(
    phase: str, volume_name: str, ref_uid: str | None, bound: bool
) -> None:
    claim = msgspec.convert(
        {"metadata": {"uid": "1"}, "spec": {"volumeName": volume_name}, "status": {"phase": phase}},
        PersistentVolumeClaim,
    )
    given = pv(claimRef={"uid": ref_uid}) if ref_uid is not None else pv()
    assert is_bound_to(claim, given) is bound
