"""Conflicts of pods that use the same volume: upstream's rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.scheme import Key
from steersman.controllers.selinuxwarning.conflicts import (
    CHANGE_POLICY,
    CONFLICTS,
    LABEL,
    Conflict,
    Use,
    UsedVolumes,
)
from steersman.intent.metrics import DropSeries, Measure

MOUNT, RECURSIVE = "MountOption", "Recursive"
TEST = Key("testns", "testpod")
EXISTING = (
    (Key("ns1", "pod1-mountOption"), Use("vol1", "system_u:system_r:label1", MOUNT)),
    (Key("ns2", "pod2-recursive"), Use("vol2", "", RECURSIVE)),
    (Key("ns3", "pod3-1"), Use("vol3", "", RECURSIVE)),
    (Key("ns3", "pod3-2"), Use("vol3", "", RECURSIVE)),
    (Key("ns4", "pod4-1"), Use("vol4", "system_u:system_r:label4", MOUNT)),
    (Key("ns4", "pod4-2"), Use("vol4", "system_u:system_r:label4", MOUNT)),
    (Key("ns5", "pod5"), Use("vol5", "::label5", MOUNT)),
    (Key("ns6", "pod6"), Use("vol6", ":system_r:label6", MOUNT)),
    (Key("ns7", "pod7"), Use("vol7", "::label7:c0,c1", MOUNT)),
    (Key("ns8", "pod8"), Use("vol8", "", MOUNT)),
)


def cache(*uses: tuple[Key, Use]) -> UsedVolumes:
    made = UsedVolumes()
    for pod, use in uses:
        made.add(pod, use)
    return made


def both(name: str, pod: Key, value: str, other: Key, other_value: str) -> set[Conflict]:
    return {Conflict(name, pod, value, other, other_value), Conflict(name, other, other_value, pod, value)}


def test_the_existing_pods_have_no_conflicts() -> None:
    assert cache(*EXISTING).conflicts() == []


@pytest.mark.parametrize(
    ("existing", "pod", "use", "expected"),
    [
        ((), TEST, Use("vol-new", "system_u:system_r:label-new", MOUNT), set()),
        (EXISTING, TEST, Use("vol-new", "system_u:system_r:label-new", MOUNT), set()),
        (EXISTING, TEST, Use("vol1", "system_u:system_r:label1", MOUNT), set()),
        (
            EXISTING,
            TEST,
            Use("vol1", "system_u:system_r:label-new", MOUNT),
            both(LABEL, TEST, "system_u:system_r:label-new", EXISTING[0][0], "system_u:system_r:label1"),
        ),
        (
            EXISTING,
            TEST,
            Use("vol1", "", RECURSIVE),
            both(CHANGE_POLICY, TEST, RECURSIVE, EXISTING[0][0], MOUNT),
        ),
        (EXISTING, EXISTING[1][0], Use("vol2", "system_u:system_r:label-new", MOUNT), set()),
        (
            EXISTING,
            EXISTING[2][0],
            Use("vol3", "system_u:system_r:label-new", MOUNT),
            both(CHANGE_POLICY, EXISTING[2][0], MOUNT, EXISTING[3][0], RECURSIVE),
        ),
        (EXISTING, TEST, Use("vol5", "system_u:system_r:label5", MOUNT), set()),
        (
            EXISTING,
            TEST,
            Use("vol5", "::label6", MOUNT),
            both(LABEL, TEST, "::label6", EXISTING[6][0], "::label5"),
        ),
        (EXISTING, TEST, Use("vol6", "system_u::label6", MOUNT), set()),
        (
            EXISTING,
            TEST,
            Use("vol7", "system_u:system_r:label7", MOUNT),
            both(LABEL, TEST, "system_u:system_r:label7", EXISTING[8][0], "::label7:c0,c1"),
        ),
        (EXISTING, TEST, Use("vol8", "system_u:system_r:label8", MOUNT), set()),
        (
            EXISTING,
            TEST,
            Use("vol8", "system_u:system_r:label8:c0,c1", MOUNT),
            both(LABEL, TEST, "system_u:system_r:label8:c0,c1", EXISTING[9][0], ""),
        ),
        (
            EXISTING,
            TEST,
            Use("vol7", "", RECURSIVE),
            both(CHANGE_POLICY, TEST, RECURSIVE, EXISTING[8][0], MOUNT)
            | both(LABEL, TEST, "", EXISTING[8][0], "::label7:c0,c1"),
        ),
        (EXISTING, *EXISTING[0], set()),
    ],
    ids=[
        "new volume, no pods",
        "new volume",
        "the same label and policy",
        "another label",
        "another policy",
        "the only pod of a volume, with another label and policy",
        "one of two pods, with another policy",
        "a label without user and role",
        "another type, without user and role",
        "a label without a user",
        "without a level",
        "no label there",
        "no label there, and a level here",
        "another policy and another level",
        "known already",
    ],
)
def test_a_pod_conflicts_with_others_that_use_its_volume(
    existing: tuple[tuple[Key, Use], ...], pod: Key, use: Use, expected: set[Conflict]
) -> None:
    used = cache(*existing)
    found, changes = used.add(pod, use)
    assert set(found) == expected
    assert len(found) == len(expected)
    assert set(used.conflicts()) == expected
    assert pod in used.users(use.volume)
    assert {change.labels for change in changes} == {conflict.labels for conflict in expected}
    assert all(isinstance(change, Measure) for change in changes)


A, B, C, D = (Key("ns", f"pod{letter}") for letter in "ABCD")


def labelled(pod: Key, volume: str = "vol1") -> tuple[Key, Use]:
    return pod, Use(volume, f"system_u:system_r:label{pod.name[-1]}", MOUNT)


@pytest.mark.parametrize(
    ("uses", "deleted", "left"),
    [
        ((labelled(A), labelled(B)), A, []),
        ((labelled(A), labelled(B), labelled(C, "vol2")), C, [(A, B)]),
        ((labelled(A), labelled(B), labelled(C)), A, [(B, C)]),
        ((labelled(B), labelled(C, "vol2"), labelled(A), labelled(A, "vol2")), A, []),
        ((labelled(A), labelled(B), labelled(C, "vol2"), labelled(D, "vol2")), A, [(C, D)]),
        ((labelled(A), labelled(B)), D, [(A, B)]),
    ],
    ids=[
        "one of two",
        "one without conflicts",
        "one of three",
        "one with two volumes",
        "other volumes",
        "one that is not known",
    ],
)
def test_a_pod_that_is_gone_takes_its_conflicts_along(
    uses: tuple[tuple[Key, Use], ...], deleted: Key, left: list[tuple[Key, Key]]
) -> None:
    used = cache(*uses)
    before = {conflict.labels for conflict in used.conflicts()}
    changes = used.remove(deleted)
    found = {(conflict.pod, conflict.other) for conflict in used.conflicts()}
    assert found == {pair for one, other in left for pair in ((one, other), (other, one))}
    after = {conflict.labels for conflict in used.conflicts()}
    assert changes == [DropSeries(CONFLICTS, labels) for labels in dict.fromkeys(c.labels for c in changes)]
    assert {change.labels for change in changes} == before - after
    assert deleted not in used
    assert used.remove(deleted) == []


def test_a_conflict_on_two_volumes_is_shown_once_until_both_are_free() -> None:
    used = cache(labelled(A), labelled(A, "vol2"), labelled(B))
    found, changes = used.add(*labelled(B, "vol2"))
    assert len(found) == 2
    assert changes == []
    assert len(used.conflicts()) == 2
    assert len(used.remove(B)) == 2
    assert used.conflicts() == []


def test_nothing_is_left_of_pods_that_are_gone() -> None:
    pods = [Key(f"ns{n}", f"pod{m}") for n in range(4) for m in range(4)]
    used = UsedVolumes()
    for pod in pods:
        for volume in ("vol1", "vol2", "vol3", "vol4"):
            assert used.add(pod, Use(volume, "label1", MOUNT, "driver")) == ([], [])
    for pod in pods:
        used.remove(pod)
    assert [used.users(volume) for volume in ("vol1", "vol4")] == [(), ()]
    assert used.users_of_driver("driver") == []


def test_the_pods_of_a_driver_are_found() -> None:
    used = cache(
        (A, Use("vol1", "", RECURSIVE, "one")),
        (B, Use("vol1", "", RECURSIVE, "one")),
        (C, Use("vol2", "", RECURSIVE, "two")),
        (A, Use("vol2", "", RECURSIVE, "two")),
        (D, Use("vol3", "", RECURSIVE)),
        (A, Use("vol4", "", RECURSIVE, "one")),
    )
    assert used.users_of_driver("one") == [A, B]
    assert used.users_of_driver("two") == [C, A]
    assert used.users_of_driver("none") == []


@pytest.mark.parametrize(
    ("conflict", "reason", "message"),
    [
        (
            Conflict(LABEL, A, ":::s0:c1,c2", B, ":::s0:c98,c99"),
            "SELinuxLabelConflict",
            'SELinuxLabel ":::s0:c1,c2" conflicts with pod podB that uses the same volume as this pod with '
            'SELinuxLabel ":::s0:c98,c99". If both pods land on the same node, only one of them may access the volume.',
        ),
        (
            Conflict(CHANGE_POLICY, A, RECURSIVE, B, MOUNT),
            "SELinuxChangePolicyConflict",
            'SELinuxChangePolicy "Recursive" conflicts with pod podB that uses the same volume as this pod with '
            'SELinuxChangePolicy "MountOption". If both pods land on the same node, only one of them may access the '
            "volume.",
        ),
        (
            Conflict(LABEL, A, ":::s0", Key("other", "secret"), ":::s1"),
            "SELinuxLabelConflict",
            'SELinuxLabel":::s0" conflicts with another pod that uses the same volume as this pod with a different '
            "SELinuxLabel. If both pods land on the same node, only one of them may access the volume.",
        ),
    ],
    ids=["label", "policy", "another namespace"],
)
def test_an_event_names_the_other_pod_in_the_same_namespace_only(
    conflict: Conflict, reason: str, message: str
) -> None:
    assert (conflict.reason, conflict.message) == (reason, message)


_steps = st.lists(
    st.tuples(
        st.sampled_from([A, B, C]),
        st.one_of(
            st.none(),
            st.builds(
                Use,
                st.sampled_from(["v1", "v2"]),
                st.sampled_from(["", ":::s0", ":::s1", "u:::s0"]),
                st.sampled_from([MOUNT, RECURSIVE]),
            ),
        ),
    ),
    max_size=12,
)


@given(_steps)
def test_the_metric_shows_the_conflicts_there_are(steps: list[tuple[Key, Use | None]]) -> None:
    used, shown = UsedVolumes(), set[tuple[str, ...]]()
    for pod, use in steps:
        for change in used.remove(pod) if use is None else used.add(pod, use)[1]:
            if isinstance(change, Measure):
                assert change.labels not in shown
                shown.add(change.labels)
            else:
                shown.remove(change.labels)
        assert shown == {conflict.labels for conflict in used.conflicts()}
        # A conflict is told to both.
        pairs = {(each.property_name, each.pod, each.other) for each in used.conflicts()}
        assert pairs == {(name, other, one) for name, one, other in pairs}
