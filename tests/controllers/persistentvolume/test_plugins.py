"""Plugins, migration to CSI drivers and the finalizers that follow from it, row by row: the outcomes are upstream's."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeSpec
from steersman.api.kinds.volume_sources import (
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
)
from steersman.controllers.persistentvolume.plugins import (
    HOST_PATH,
    NFS,
    NoPlugin,
    deleter_of,
    external_name,
    migrated_claim_annotations,
    migrated_volume_annotations,
    plugin_of,
    protecting_finalizers,
    provisioner_of,
)
from steersman.controllers.persistentvolume.reclaim import is_removable
from steersman.controllers.persistentvolume.recycle import deadline
from steersman.controllers.persistentvolume.seen import Recycler

GCE, GCE_DRIVER = "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"
EXTERNAL = "external-provisioner.volume.kubernetes.io/finalizer"
IN_TREE = "kubernetes.io/pv-controller"
CUSTOM = "test.volume.kubernetes.io/finalizer"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"


def volume(
    provisioned_by: str | None, *finalizers: str, policy: str = "Delete", **spec: Any
) -> PersistentVolume:
    annotations = {PROVISIONED_BY: provisioned_by} if provisioned_by is not None else {}
    return PersistentVolume(
        metadata=ObjectMeta(name="v", annotations=annotations, finalizers=finalizers),
        spec=PersistentVolumeSpec(persistentVolumeReclaimPolicy=policy, **spec),
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (volume("rbd.csi.ceph.com", EXTERNAL), (EXTERNAL,)),
        (volume("rbd.csi.ceph.com"), ()),
        (volume(HOST_PATH, CUSTOM), (CUSTOM, IN_TREE)),
        (volume(HOST_PATH), (IN_TREE,)),
        (volume(HOST_PATH, EXTERNAL), (IN_TREE,)),
        (volume(HOST_PATH, EXTERNAL, CUSTOM), (CUSTOM, IN_TREE)),
        (volume(GCE, EXTERNAL, IN_TREE), (EXTERNAL,)),
        (volume(GCE, EXTERNAL), (EXTERNAL,)),
        (volume(None, EXTERNAL), (EXTERNAL,)),
        (volume(None), ()),
        (volume(HOST_PATH, policy="Retain"), ()),
        (volume(HOST_PATH, policy="Recycle"), ()),
        (volume(HOST_PATH, IN_TREE, policy="Retain"), ()),
        (volume(HOST_PATH, IN_TREE, policy="Recycle"), ()),
        (volume(HOST_PATH, IN_TREE), (IN_TREE,)),
    ],
    ids=repr,
)
def test_a_provisioned_volume_has_the_finalizer_of_its_deleter(
    given: PersistentVolume, wanted: tuple[str, ...]
) -> None:
    found = protecting_finalizers(given)
    assert found == wanted
    assert (found is given.metadata.finalizers) == (wanted == given.metadata.finalizers)


@pytest.mark.parametrize(
    ("provisioner", "before", "after"),
    [
        (GCE, None, GCE_DRIVER),
        (GCE, GCE_DRIVER, GCE_DRIVER),
        (GCE, "other.example.com", GCE_DRIVER),
        ("kubernetes.io/rbd", None, None),
        ("kubernetes.io/rbd", "rbd.csi.ceph.com", None),
        ("vendor.example.com", None, None),
        (None, "stays.example.com", "stays.example.com"),
        (None, None, None),
    ],
)
@pytest.mark.parametrize("key", [PROVISIONED_BY, PROVISIONER, BETA_PROVISIONER])
def test_an_object_names_the_driver_that_its_plugin_was_replaced_by(
    key: str, provisioner: str | None, before: str | None, after: str | None
) -> None:
    given = {**({key: provisioner} if provisioner else {}), **({MIGRATED_TO: before} if before else {})}
    migrate = migrated_volume_annotations if key == PROVISIONED_BY else migrated_claim_annotations
    found = migrate(given)
    assert found.get(MIGRATED_TO) == after
    assert (found is given) == (before == after)


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        (HOST_PATH, HOST_PATH),
        ("vendor.example.com/driver", ""),
        (GCE, ""),
        (NFS, NoPlugin("no provisionable volume plugin matched")),
        (
            "kubernetes.io/no-provisioner",
            NoPlugin("no volume plugin matched name: kubernetes.io/no-provisioner"),
        ),
    ],
)
def test_a_class_is_provisioned_here_or_by_another_program_or_not_at_all(
    name: str, plugin: str | NoPlugin
) -> None:
    if isinstance(plugin, NoPlugin):
        with pytest.raises(NoPlugin, match=f"^{plugin}$"):
            provisioner_of(name)
    else:
        assert provisioner_of(name) == plugin


SOURCE: dict[str, Any] = {"hostPath": HostPathVolumeSource(path="/tmp/x")}
NONE = 'error getting deleter volume plugin for volume "v": no volume plugin matched'
NOT_DELETABLE = 'error getting deleter volume plugin for volume "v": no deletable volume plugin matched'


@pytest.mark.parametrize(
    ("given", "plugin"),
    [
        (volume(None, **SOURCE), HOST_PATH),
        (volume(HOST_PATH), HOST_PATH),
        (volume("vendor.example.com", **SOURCE), ""),
        (volume("", **SOURCE), HOST_PATH),
        (volume(None, csi=CSIPersistentVolumeSource(driver="d")), ""),
        (volume(NFS), NoPlugin("no deletable volume plugin matched")),
        (volume("kubernetes.io/rbd"), NoPlugin("no volume plugin matched name: kubernetes.io/rbd")),
        (volume(None, nfs=NFSVolumeSource()), NoPlugin(NOT_DELETABLE)),
        (volume(None, gcePersistentDisk=GCEPersistentDiskVolumeSource()), NoPlugin(NONE)),
    ],
    ids=repr,
)
def test_a_volume_is_deleted_here_or_by_another_program_or_not_at_all(
    given: PersistentVolume, plugin: str | NoPlugin
) -> None:
    if isinstance(plugin, NoPlugin):
        with pytest.raises(NoPlugin, match=f"^{plugin}$"):
            deleter_of(given)
    else:
        assert deleter_of(given) == plugin


def test_hostpath_and_nfs_volumes_are_recycled() -> None:
    assert plugin_of(volume(None, **SOURCE)) == HOST_PATH
    assert plugin_of(volume(None, nfs=NFSVolumeSource())) == NFS
    assert plugin_of(volume(None, csi=CSIPersistentVolumeSource(driver="d"))) == ""


def test_an_external_provisioner_goes_by_the_name_of_its_driver() -> None:
    assert external_name(GCE) == GCE_DRIVER
    assert external_name("vendor.example.com/driver") == "vendor.example.com/driver"


@pytest.mark.parametrize(
    ("path", "removable"),
    [
        ("/tmp/hostpath_pv/1", True),
        ("/tmp/x", True),
        ("/tmp", False),
        ("/tmp/", False),
        ("/var/tmp/x", False),
        ("/tmp/../etc", False),
        ("/tmp//x", False),
        ("/tmp/./x", False),
        ("/etc", False),
        ("tmp/x", False),
        ("", False),
    ],
)
def test_only_directories_below_tmp_are_removed(path: str, removable: bool) -> None:
    assert is_removable(path) is removable


@pytest.mark.parametrize(
    ("size", "seconds"), [("1Gi", 60), ("2Gi", 60), ("3Gi", 90), ("100Gi", 3000), ("1Mi", 60)]
)
def test_a_recycler_has_more_time_for_a_larger_volume(size: str, seconds: int) -> None:
    assert deadline(Recycler(60, 30), volume(None, capacity={"storage": size})) == seconds
