"""CSI migration: in-tree volumes and the CSI volumes that replace them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.generated import core_v1
from steersman.api.kinds import Volume
from steersman.api.kinds.storage import PersistentVolume
from steersman.controllers.shared.csi_migration import (
    DRIVERS,
    Untranslatable,
    ebs_volume_id,
    gce_access_modes,
    in_tree_plugin,
    storage_account,
    translate,
    translate_inline,
)

Document = dict[str, Any]
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONE = "topology.kubernetes.io/zone"


def pv(source: Document, labels: Document | None = None, **more: Any) -> PersistentVolume:
    metadata = {"name": "pv", "labels": labels or {}, "annotations": more.pop("annotations", {})}
    return msgspec.convert({"metadata": metadata, "spec": {**source, **more}}, PersistentVolume)


@pytest.mark.parametrize(
    ("source", "plugin", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "kubernetes.io/aws-ebs", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1/vol-1"}}, "kubernetes.io/aws-ebs", "vol-1"),
        ({"cinder": {"volumeID": "disk"}}, "kubernetes.io/cinder", "disk"),
        ({"portworxVolume": {"volumeID": "px"}}, "kubernetes.io/portworx-volume", "px"),
        ({"vsphereVolume": {"volumePath": "[ds] a.vmdk"}}, "kubernetes.io/vsphere-volume", "[ds] a.vmdk"),
        ({"azureDisk": {"diskName": "d", "diskURI": "/subs/d"}}, "kubernetes.io/azure-disk", "/subs/d"),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "/subs/d", "kind": "managed"}},
            "kubernetes.io/azure-disk",
            "/subs/d",
        ),
        (
            {
                "azureFile": {
                    "secretName": "azure-storage-account-acc-secret",
                    "shareName": "s",
                    "secretNamespace": "x",
                }
            },
            "kubernetes.io/azure-file",
            "#acc#s#pv#x",
        ),
        (
            {"azureFile": {"secretName": "own", "shareName": "s"}, "claimRef": {"namespace": "ns"}},
            "kubernetes.io/azure-file",
            "#own#s#pv#ns",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            "kubernetes.io/gce-pd",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
    ],
)
def test_a_volume_is_that_of_the_driver_which_replaces_its_plugin(
    source: Document, plugin: str, handle: str
) -> None:
    given = pv(source)
    found = translate(given)
    assert found is not None
    assert (in_tree_plugin(given), found.driver, found.handle) == (plugin, DRIVERS[plugin], handle)


@pytest.mark.parametrize(
    ("labels", "path"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({BETA_ZONE: "us-east1-a"}, "zones/us-east1-a"),
        ({ZONE: "us-east1-b"}, "zones/us-east1-b"),
        ({BETA_ZONE: "us-east1-a", ZONE: "us-east1-b"}, "zones/us-east1-a"),
        ({ZONE: "us-east1-a__us-east1-b"}, "regions/us-east1"),
    ],
)
def test_a_gce_disk_is_named_after_the_zones_of_its_label(labels: Document, path: str) -> None:
    found = translate(pv({"gcePersistentDisk": {"pdName": "d"}}, labels))
    assert found is not None
    assert found.handle == f"projects/UNSPECIFIED/{path}/disks/d"


@pytest.mark.parametrize(
    "given",
    [
        pv({"awsElasticBlockStore": {"volumeID": "aws:///disk-1"}}),
        pv({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1/more"}}),
        pv({"awsElasticBlockStore": {"volumeID": "aws://[zone/vol-1"}}),
        pv({"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Dedicated"}}),
        pv({"azureFile": {"secretName": "s", "shareName": "s"}}),
        pv({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "us-east1-a__us-west1-b"}),
        pv({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a__b"}),
    ],
)
def test_a_malformed_source_has_no_csi_form(given: PersistentVolume) -> None:
    with pytest.raises(Untranslatable):
        translate(given)


@pytest.mark.parametrize("source", [{"hostPath": {"path": "/"}}, {"nfs": {"server": "s", "path": "/"}}, {}])
def test_other_sources_are_left_alone(source: Document) -> None:
    assert translate(pv(source)) is None
    assert in_tree_plugin(pv(source)) == ""


@pytest.mark.parametrize(
    ("modes", "translated"),
    [
        ((), ()),
        (("ReadOnlyMany",), ("ReadOnlyMany",)),
        (("ReadWriteOnce",), ("ReadWriteOnce",)),
        (("ReadWriteMany",), ("ReadWriteOnce",)),
        (("ReadWriteOnce", "ReadOnlyMany"), ("ReadWriteOnce",)),
        (("ReadWriteOnce", "ReadWriteMany"), ("ReadWriteOnce",)),
        (("ReadWriteMany", "ReadOnlyMany"), ("ReadWriteOnce",)),
        (("ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"), ("ReadWriteOnce",)),
    ],
)
def test_a_gce_disk_is_written_to_by_one_node(modes: tuple[str, ...], translated: tuple[str, ...]) -> None:
    assert gce_access_modes(modes) == translated


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("vol-1", "vol-1"),
        ("aws:///vol-1", "vol-1"),
        ("aws://us-east-1/vol-02399794d890f9375", "vol-02399794d890f9375"),
    ],
)
def test_an_ebs_volume_is_named_without_its_zone(given: str, found: str) -> None:
    assert ebs_volume_id(given) == found


@pytest.mark.parametrize(
    ("secret", "account"),
    [("azure-storage-account-f5713de20cde511e8ba4900-secret", "f5713de20cde511e8ba4900"), ("other", "other")],
)
def test_the_secret_of_azure_file_names_the_storage_account(secret: str, account: str) -> None:
    assert storage_account(secret) == account


INLINE: list[tuple[Document, str, Document]] = [
    (
        {"awsElasticBlockStore": {"volumeID": "aws:///vol-1", "fsType": "ext4", "partition": 1}},
        "ebs.csi.aws.com-vol-1",
        {
            "csi": {
                "driver": "ebs.csi.aws.com",
                "volumeHandle": "vol-1",
                "fsType": "ext4",
                "volumeAttributes": {"partition": "1"},
            },
            "accessModes": ["ReadWriteOnce"],
        },
    ),
    (
        {
            "azureDisk": {
                "diskName": "d",
                "diskURI": "/u",
                "cachingMode": "None",
                "fsType": "xfs",
                "readOnly": True,
            }
        },
        "/u",
        {
            "csi": {
                "driver": "disk.csi.azure.com",
                "volumeHandle": "/u",
                "fsType": "xfs",
                "readOnly": True,
                "volumeAttributes": {"kind": "Managed", "cachingmode": "None", "fstype": "xfs"},
            },
            "accessModes": ["ReadWriteOnce"],
        },
    ),
    (
        {"azureFile": {"secretName": "s", "shareName": "share"}},
        "#s#share#data#ns",
        {
            "csi": {
                "driver": "file.csi.azure.com",
                "volumeHandle": "#s#share#data#ns",
                "volumeAttributes": {"sharename": "share"},
                "nodeStageSecretRef": {"name": "s", "namespace": "ns"},
            },
            "accessModes": ["ReadWriteMany"],
        },
    ),
    (
        {"cinder": {"volumeID": "c", "readOnly": True}},
        "cinder.csi.openstack.org-c",
        {
            "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "c", "readOnly": True},
            "accessModes": ["ReadWriteOnce"],
        },
    ),
    (
        {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        "pd.csi.storage.gke.io-d",
        {
            "csi": {
                "driver": "pd.csi.storage.gke.io",
                "volumeHandle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
                "readOnly": True,
                "volumeAttributes": {"partition": ""},
            },
            "accessModes": ["ReadOnlyMany"],
        },
    ),
    (
        {"portworxVolume": {"volumeID": "p", "readOnly": True}},
        "pxd.portworx.com-p",
        {"csi": {"driver": "pxd.portworx.com", "volumeHandle": "p"}, "accessModes": ["ReadOnlyMany"]},
    ),
    (
        {"vsphereVolume": {"volumePath": "v", "storagePolicyName": "gold"}},
        "csi.vsphere.vmware.com-v",
        {
            "csi": {
                "driver": "csi.vsphere.vmware.com",
                "volumeHandle": "v",
                "volumeAttributes": {"storagepolicyname": "gold"},
            },
            "accessModes": ["ReadWriteOnce"],
        },
    ),
]


@pytest.mark.parametrize(("source", "name", "spec"), INLINE, ids=[next(iter(row[0])) for row in INLINE])
@pytest.mark.parametrize("type_", [Volume, core_v1.Volume])
def test_an_inline_volume_stands_for_a_persistent_volume(
    type_: type[Volume], source: Document, name: str, spec: Document
) -> None:
    found = translate_inline(msgspec.convert({"name": "data", **source}, type_), "ns")
    assert found is not None
    assert found.name == name
    assert found.inline_spec == {**spec, "volumeMode": "Filesystem"}


def test_an_unmanaged_disk_in_a_pod_has_no_csi_form() -> None:
    volume = msgspec.convert(
        {"name": "data", "azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Shared"}}, Volume
    )
    with pytest.raises(Untranslatable):
        translate_inline(volume, "ns")


def test_a_pods_volume_of_another_kind_is_left_alone() -> None:
    assert translate_inline(Volume(name="data"), "ns") is None
