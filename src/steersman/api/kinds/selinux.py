"""The view of pods for their SELinux labels: which containers mount which volumes, and with which options.

It is a view of its own, so that a manager which does not look at labels keeps no mounts in memory.
"""

from __future__ import annotations

from steersman.api.kinds import PODS, Object, Struct, Volume
from steersman.api.scheme import register


class SELinuxOptions(Struct, frozen=True):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SecurityContext(Struct, frozen=True):
    seLinuxOptions: SELinuxOptions | None = None


class PodSecurityContext(Struct, frozen=True):
    seLinuxOptions: SELinuxOptions | None = None
    seLinuxChangePolicy: str | None = None


class VolumeMount(Struct, frozen=True):
    name: str = ""


class MountingContainer(Struct, frozen=True):
    """A container of any kind."""

    securityContext: SecurityContext | None = None
    volumeMounts: tuple[VolumeMount, ...] = ()


class SELinuxPodSpec(Struct, frozen=True):
    securityContext: PodSecurityContext | None = None
    volumes: tuple[Volume, ...] = ()
    containers: tuple[MountingContainer, ...] = ()
    initContainers: tuple[MountingContainer, ...] = ()
    ephemeralContainers: tuple[MountingContainer, ...] = ()


class SELinuxPod(Object, frozen=True):
    spec: SELinuxPodSpec = SELinuxPodSpec()


SELINUX_PODS = register(PODS.as_(SELinuxPod)).where("status.phase!=Succeeded,status.phase!=Failed")
"""Pods that have not ended: a kubelet unmounts the volumes of those that have."""
