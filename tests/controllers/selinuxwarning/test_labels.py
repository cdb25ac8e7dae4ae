"""SELinux labels: upstream's rows."""

from __future__ import annotations

import pytest

from steersman.api.kinds.selinux import (
    MountingContainer,
    PodSecurityContext,
    SecurityContext,
    SELinuxOptions,
    SELinuxPod,
    SELinuxPodSpec,
    VolumeMount,
)
from steersman.controllers.selinuxwarning.labels import (
    change_policy,
    label_of,
    labels_conflict,
    mount_label,
    mounted_labels,
    parts_of,
)

FULL = SELinuxOptions(user="system_u", role="system_r", type="container_t", level="s0:c0,c1")


@pytest.mark.parametrize(
    ("options", "label"),
    [
        (None, ""),
        (FULL, "system_u:system_r:container_t:s0:c0,c1"),
        (SELinuxOptions(type="container_t", level="s0:c0,c1"), "::container_t:s0:c0,c1"),
        (SELinuxOptions(level="s0:c0,c1"), ":::s0:c0,c1"),
        (SELinuxOptions(), ""),
    ],
    ids=["none", "all", "some", "level", "empty"],
)
def test_a_label_is_made_of_options(options: SELinuxOptions | None, label: str) -> None:
    assert label_of(options) == label


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("", ("", "", "", "")),
        ("system_u:system_r:container_t:s0:c0,c1", ("system_u", "system_r", "container_t", "s0:c0,c1")),
        ("system_u:system_r:container_t", ("system_u", "system_r", "container_t", "")),
        ("system_u:system_r", ("system_u", "system_r", "", "")),
        ("system_u", ("system_u", "", "", "")),
        (":system_r:container_t", ("", "system_r", "container_t", "")),
        ("::container_t", ("", "", "container_t", "")),
        ("::container_t:s0", ("", "", "container_t", "s0")),
        (":::s0:c0,c1", ("", "", "", "s0:c0,c1")),
        ("a_b:c-d:e.f:s0:c0.c1", ("a_b", "c-d", "e.f", "s0:c0.c1")),
        (":::", ("", "", "", "")),
    ],
)
def test_a_label_has_four_parts(label: str, parts: tuple[str, ...]) -> None:
    assert parts_of(label) == parts


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ("", "", False),
        ("", "system_u:system_r:container_t", False),
        ("", "system_u:system_r:container_t:s0:c1,c2", True),
        (":::", "system_u:system_r:container_t", False),
        ("system_u:system_r:container_t:", "system_u:system_r", False),
        ("system_u:system_r:conflict_t:", "system_u:system_r:container_t", True),
        ("::conflict_t", "::container_t", True),
        ("system_u::container_t", ":system_r::", False),
        (":::s0:c1,c2", "", True),
        ("system_u:system_r:container_t:s0:c1,c2", ":::s0:c1,c2", False),
        ("system_u:system_r:container_t:s0:c1,c2", ":::s0:c98,c99", True),
    ],
)
def test_labels_conflict_in_parts_that_both_have_and_in_their_levels(
    one: str, other: str, conflict: bool
) -> None:
    assert labels_conflict(one, other) is conflict
    assert labels_conflict(other, one) is conflict


# -- pods -----------------------------------------------------------------------------------------


def container(level: str | None, *mounts: str) -> MountingContainer:
    options = SELinuxOptions(level=level) if level is not None else None
    return MountingContainer(
        securityContext=SecurityContext(seLinuxOptions=options),
        volumeMounts=tuple(VolumeMount(name=name) for name in mounts),
    )


def pod(level: str | None = None, policy: str | None = None, *containers: MountingContainer) -> SELinuxPod:
    options = SELinuxOptions(level=level) if level is not None else None
    context = PodSecurityContext(seLinuxOptions=options, seLinuxChangePolicy=policy)
    return SELinuxPod(spec=SELinuxPodSpec(securityContext=context, containers=containers))


@pytest.mark.parametrize(
    ("found", "labels"),
    [
        (pod(None, None, container(None, "a")), {"a": []}),
        (pod("s0", None, container(None, "a")), {"a": [":::s0"]}),
        (pod("s0", None, container("s1", "a")), {"a": [":::s1"]}),
        (pod("s0", None, container("s0", "a"), container(None, "a")), {"a": [":::s0"]}),
        (pod("s0", None, container("s1", "a"), container(None, "a", "b")), {"a": [":::s1", ":::s0"], "b": [":::s0"]}),
        (pod(None, None, container("s1", "a"), container(None, "a")), {"a": [":::s1"]}),
        (pod(None, None, container("s1", "a"), container("", "a")), {"a": [":::s1", ""]}),
        (pod("s0", None, container(None)), {}),
    ],
    ids=[
        "no options",
        "of the pod",
        "of the container",
        "the same twice",
        "two",
        "one without options",
        "one with empty options",
        "no mounts",
    ],
)  # fmt: skip
def test_a_mount_has_the_labels_of_its_containers(found: SELinuxPod, labels: dict[str, list[str]]) -> None:
    assert mounted_labels(found) == labels


def test_containers_of_every_kind_mount_volumes() -> None:
    spec = SELinuxPodSpec(
        initContainers=(container("s0", "a"),),
        containers=(container("s1", "b"),),
        ephemeralContainers=(container("s2", "a"),),
    )
    assert mounted_labels(SELinuxPod(spec=spec)) == {"a": [":::s0", ":::s2"], "b": [":::s1"]}


@pytest.mark.parametrize(
    ("policy", "supported", "label", "expected"),
    [
        (None, True, ":::s0", (":::s0", "MountOption")),
        ("MountOption", True, ":::s0", (":::s0", "MountOption")),
        ("Recursive", True, ":::s0", ("", "Recursive")),
        (None, False, ":::s0", ("", "Recursive")),
        ("MountOption", False, ":::s0", ("", "Recursive")),
        ("MountOption", True, "", ("", "Recursive")),
    ],
)
def test_a_volume_is_mounted_with_a_label_where_pod_and_plugin_agree(
    policy: str | None, supported: bool, label: str, expected: tuple[str, str]
) -> None:
    found = pod(None, policy)
    used = mount_label(found, label, mount_supported=supported)
    assert (used, change_policy(found, used, mount_supported=supported)) == expected


def test_a_pod_without_a_security_context_asks_for_nothing() -> None:
    assert mount_label(SELinuxPod(), ":::s0", mount_supported=True) == ":::s0"
    assert change_policy(SELinuxPod(), ":::s0", mount_supported=True) == "MountOption"
