"""SELinux labels of pods and volumes: how a label is made of options, and which labels conflict."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.kinds.selinux import MountingContainer, SELinuxOptions, SELinuxPod

MOUNT_OPTION, RECURSIVE = "MountOption", "Recursive"
"""Change policies: a volume gets its label when it is mounted, or file by file."""
_EMPTY = ":::"


def label_of(options: SELinuxOptions | None) -> str:
    """The label ``user:role:type:level``; empty where no part is set.

    The manager knows no defaults of a node's operating system, so parts that are not set stay empty.
    """
    if options is None:
        return ""
    label = ":".join((options.user, options.role, options.type, options.level))
    return "" if label == _EMPTY else label


def parts_of(label: str) -> tuple[str, str, str, str]:
    """User, role, type and level. The level may have colons itself."""
    user, role, type_, level = (*label.split(":", 3), "", "", "", "")[:4]
    return user, role, type_, level


def labels_conflict(one: str, other: str) -> bool:
    """Whether two labels differ in a part that both have, or in their levels.

    A node may complete the first three parts, so an empty one fits any other. A level is never completed.
    """
    (*named, level), (*others, other_level) = parts_of(one), parts_of(other)
    if level != other_level:
        return True
    return any(a and b and a != b for a, b in zip(named, others, strict=True))


def change_policy(pod: SELinuxPod, label: str, *, mount_supported: bool) -> str:
    """The change policy that takes effect: without support of the volume, or without a label, it is Recursive."""
    context = pod.spec.securityContext
    policy = context.seLinuxChangePolicy if context is not None else None
    return (policy or MOUNT_OPTION) if mount_supported and label else RECURSIVE


def mount_label(pod: SELinuxPod, label: str, *, mount_supported: bool) -> str:
    """The label that a volume is mounted with; empty where it is not mounted with one."""
    context = pod.spec.securityContext
    recursive = context is not None and context.seLinuxChangePolicy == RECURSIVE
    return label if mount_supported and not recursive else ""


# -- mounts ---------------------------------------------------------------------------------------


def mounted_labels(pod: SELinuxPod) -> dict[str, list[str]]:
    """The names of the volumes that containers mount, each with the labels of those containers.

    A container without options, of its own or of the pod, has no label to mount with.
    """
    found: dict[str, list[str]] = {}
    for container in _containers(pod):
        options = _effective_options(pod, container)
        for mount in container.volumeMounts:
            labels = found.setdefault(mount.name, [])
            if options is not None and (label := label_of(options)) not in labels:
                labels.append(label)
    return found


def _containers(pod: SELinuxPod) -> Iterator[MountingContainer]:
    yield from pod.spec.initContainers
    yield from pod.spec.containers
    yield from pod.spec.ephemeralContainers


def _effective_options(pod: SELinuxPod, container: MountingContainer) -> SELinuxOptions | None:
    """The options of a container, or else those of its pod."""
    if container.securityContext is not None and container.securityContext.seLinuxOptions is not None:
        return container.securityContext.seLinuxOptions
    return pod.spec.securityContext.seLinuxOptions if pod.spec.securityContext is not None else None
