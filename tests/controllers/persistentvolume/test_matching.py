"""Which volume a claim gets, row by row: the outcomes are those of upstream's index."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.kinds import LabelSelector, LabelSelectorRequirement, ObjectMeta, ObjectReference
from steersman.api.kinds.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeResourceRequirements,
)
from steersman.api.volume_binding import mismatch
from steersman.controllers.persistentvolume.matching import FreeVolumes, find_volume
from steersman.intent.verdict import InvalidSpec

RWO, ROX, RWX = "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXIST = LabelSelector(matchLabels={"should-exist": "true"})


def volume(
    name: str, size: str, *modes: str, ref: ObjectReference | None = None, **fields: Any
) -> PersistentVolume:
    meta = ObjectMeta(
        name=name, labels=fields.pop("labels", {}), deletionTimestamp=fields.pop("deletionTimestamp", None)
    )
    phase = fields.pop("phase", "Available")
    spec = PersistentVolumeSpec(
        accessModes=modes or (RWO,), capacity={"storage": size}, claimRef=ref, **fields
    )
    return PersistentVolume(metadata=meta, spec=spec, status=PersistentVolumeStatus(phase=phase))


def claim(size: str, *modes: str, **spec: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="claim01", namespace="myns", uid="uid"),
        spec=PersistentVolumeClaimSpec(
            accessModes=modes or (RWO,),
            resources=VolumeResourceRequirements(requests={"storage": size}),
            **spec,
        ),
    )


def found(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, delayed: bool = False) -> str:
    """The name of the volume that a claim gets; empty for none."""
    by_name = {each.metadata.name: each for each in volumes}
    free = FreeVolumes()
    for each in by_name.values():
        free.put(each)
    reserved = [
        each
        for each in by_name.values()
        if each.spec.claimRef is not None and each.spec.claimRef.name == claim.metadata.name
    ]
    chosen = find_volume(claim, reserved, free, by_name.get, delayed=delayed)
    return chosen.metadata.name if chosen is not None else ""


BOUND = ObjectReference(namespace="any", name="other", uid="abc123")
LABELLED: dict[str, Any] = {"labels": {"should-exist": "true"}}
VOLUMES = (
    volume("gce-pd-1", "1G", RWO, ROX, ref=BOUND, phase="Bound"),
    volume("gce-pd-5", "5G", RWO, ROX),
    volume("gce-pd-10", "10G", RWO, ROX),
    volume("gce-pd-2", "20000G", RWO, **LABELLED),
    volume("nfs-5", "5G", RWO, ROX, RWX),
    volume("nfs-10", "10G", RWO, ROX, RWX),
    volume("silver-1", "100G", RWO, storageClassName="silver", **LABELLED),
    volume("silver-2", "50G", RWO, storageClassName="silver"),
    volume("vac-silver", "15G", RWO, volumeAttributesClassName="silver"),
    volume("very-large", "200E", RWO, storageClassName="large"),
    volume("extremely-large", "800E", RWO, storageClassName="large"),
    volume("block", "8G", RWO, volumeMode="Block", storageClassName="modes"),
    volume("files", "9G", RWO, volumeMode="Filesystem", storageClassName="modes"),
)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (claim("8G"), "gce-pd-2"),
        (claim("8G", RWO, ROX), "gce-pd-10"),
        (claim("5G", ROX, RWO, RWX), "nfs-5"),
        (claim("1G", RWO, ROX), "gce-pd-5"),
        (claim("99999G"), ""),
        (claim("999G", selector=LabelSelector(matchLabels={"should-not-exist": "true"})), ""),
        (claim("20000G", ROX, RWO, selector=EXIST), ""),
        (claim("20000G", selector=EXIST), "gce-pd-2"),
        (claim("8G", RWO, ROX, volumeAttributesClassName=""), "gce-pd-10"),
        (claim("1G", volumeAttributesClassName="silver"), "vac-silver"),
        (claim("1G", volumeAttributesClassName="no-such"), ""),
        (claim("1G", storageClassName="silver", selector=EXIST), "silver-1"),
        (claim("1G", storageClassName="silver"), "silver-2"),
        (claim("1G", storageClassName="no-such"), ""),
        (claim("1E", storageClassName="large"), "very-large"),
        (claim("800E", storageClassName="large"), "extremely-large"),
        (claim("950E", storageClassName="large"), ""),
        (claim("1G", storageClassName="modes", volumeMode="Block"), "block"),
        (claim("1G", storageClassName="modes", volumeMode="Filesystem"), "files"),
        (claim("1G", storageClassName="modes"), "files"),
        (claim("9G", storageClassName="modes", volumeMode="Block"), ""),
        (claim("1G", "ReadWriteOncePod"), ""),
    ],
    ids=repr,
)
def test_a_claim_gets_the_smallest_volume_with_the_fewest_access_modes(
    wanted: PersistentVolumeClaim, name: str
) -> None:
    assert found(wanted, VOLUMES) == name


MINE = ObjectReference(namespace="myns", name="claim01", uid="uid")
SIZED = {
    "pv1": volume("pv1", "1Gi"),
    "pv5": volume("pv5", "5Gi"),
    "pv8": volume("pv8", "8Gi"),
    "small": volume("small", "1Mi"),
    "modeless": volume("modeless", "1Gi", ROX),
}


@pytest.mark.parametrize(
    ("reserved", "ref", "name"),
    [
        ("", None, "pv1"),
        ("pv1", ObjectReference(namespace="bar", name="foo"), "pv5"),
        ("pv8", MINE, "pv8"),
        ("pv8", ObjectReference(namespace="myns", name="claim01"), "pv8"),
        ("pv8", ObjectReference(namespace="myns", name="claim01", uid="another"), "pv1"),
        ("pv8", ObjectReference(namespace="elsewhere", name="claim01"), "pv1"),
        ("small", MINE, "pv1"),
        ("modeless", MINE, "pv1"),
    ],
)
def test_a_volume_that_is_reserved_for_the_claim_comes_first(
    reserved: str, ref: ObjectReference | None, name: str
) -> None:
    volumes = dict(SIZED)
    if reserved:
        volumes[reserved] = replace(volumes[reserved], spec=replace(volumes[reserved].spec, claimRef=ref))
    assert found(claim("1Gi"), volumes.values()) == name


@pytest.mark.parametrize(("ref", "name"), [(None, ""), (MINE, "pv8")])
def test_with_delayed_binding_only_a_reserved_volume_is_taken(ref: ObjectReference | None, name: str) -> None:
    pv8 = replace(SIZED["pv8"], spec=replace(SIZED["pv8"].spec, claimRef=ref))
    assert found(claim("1Gi"), [SIZED["pv1"], pv8], delayed=True) == name


@pytest.mark.parametrize("phase", ["", "Pending", "Available", "Bound", "Released", "Failed"])
def test_only_a_volume_that_is_or_will_be_available_is_free(phase: str) -> None:
    assert found(claim("1Gi"), [volume("v", "1Gi", phase=phase)]) == (
        "v" if phase in ("", "Pending", "Available") else ""
    )


def test_a_volume_that_is_being_deleted_is_not_free() -> None:
    assert found(claim("1Gi"), [volume("v", "1Gi", deletionTimestamp=NOW)]) == ""
    assert found(claim("1Gi"), [volume("v", "1Gi", ref=MINE, deletionTimestamp=NOW)]) == ""


def test_a_selector_that_is_none_fails_the_claim_alone() -> None:
    odd = LabelSelector(matchExpressions=(LabelSelectorRequirement(key="a", operator="Odd"),))
    with pytest.raises(InvalidSpec, match="error finding PV for claim"):
        found(claim("1Gi", selector=odd), VOLUMES)


@pytest.mark.parametrize(
    ("given", "wanted", "why"),
    [
        (volume("v", "1Gi"), claim("1Gi"), ""),
        (volume("v", "1Gi", deletionTimestamp=NOW), claim("1Gi"), 'the volume is marked for deletion "v"'),
        (volume("v", "1Gi"), claim("2Gi"), "requested PV is too small"),
        (volume("v", "1Gi", storageClassName="a"), claim("1Gi"), "storageClassName does not match"),
        (
            volume("v", "1Gi", volumeAttributesClassName="a"),
            claim("1Gi"),
            "volumeAttributesClassName does not match",
        ),
        (volume("v", "1Gi", volumeMode="Block"), claim("1Gi"), "incompatible volumeMode"),
        (volume("v", "1Gi", volumeMode="Block"), claim("1Gi", volumeMode="Block"), ""),
        (volume("v", "1Gi"), claim("1Gi", volumeMode="Filesystem"), ""),
        (volume("v", "1Gi", RWO), claim("1Gi", RWX), "incompatible accessMode"),
        (volume("v", "1Gi", RWO, ROX), claim("1Gi", RWO, ROX), ""),
        (volume("v", "1Gi", RWO), claim("1Gi", RWO, ROX), "incompatible accessMode"),
    ],
    ids=repr,
)
def test_a_volume_that_a_claim_names_satisfies_it_or_says_why_not(
    given: PersistentVolume, wanted: PersistentVolumeClaim, why: str
) -> None:
    assert mismatch(given, wanted) == why


SIZES = st.integers(1, 6).map(lambda size: f"{size}Gi")
SETS = st.sampled_from([(RWO,), (ROX,), (RWO, ROX), (RWO, ROX, RWX)])
FREE = st.lists(st.tuples(SIZES, SETS, st.sampled_from(["", "a"])), max_size=12)


@given(FREE, SIZES, SETS, st.sampled_from(["", "a"]), st.data())
def test_the_index_finds_what_a_scan_finds(
    volumes: list[tuple[str, tuple[str, ...], str]],
    size: str,
    modes: tuple[str, ...],
    storage_class: str,
    data: st.DataObject,
) -> None:
    made = {
        f"v{number}": volume(f"v{number}", each, *sets, storageClassName=of)
        for number, (each, sets, of) in enumerate(volumes)
    }
    free = FreeVolumes()
    for each in made.values():
        free.put(each)
    for name in data.draw(st.sets(st.sampled_from(sorted(made)))) if made else ():
        free.remove(name)
        del made[name]
    assert len(free) == len(made)
    wanted = claim(size, *modes, storageClassName=storage_class)
    fitting = [each for each in made.values() if not mismatch(each, wanted)]
    best = min(
        fitting,
        key=lambda each: (
            len(each.spec.accessModes),
            each.spec.accessModes,
            int(str(each.spec.capacity["storage"]).removesuffix("Gi")),
            each.metadata.name,
        ),
        default=None,
    )
    chosen = find_volume(wanted, (), free, made.get)
    if best is None:
        assert chosen is None
    else:
        assert chosen is not None
        assert len(chosen.spec.accessModes) == len(best.spec.accessModes)
        assert chosen in fitting
