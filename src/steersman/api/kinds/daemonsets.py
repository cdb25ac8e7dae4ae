"""Views of DaemonSets, and of the fields of a pod's spec that select nodes."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.kinds import (
    EMPTY,
    Condition,
    LabelSelector,
    Object,
    PodTemplateSpec,
    RollingUpdate,
    Struct,
    Toleration,
)
from steersman.api.kinds.nodes import NodeSelector
from steersman.api.scheme import Kind, register

# -- where a pod may be -----------------------------------------------------------------------


class NodeAffinity(Struct, frozen=True):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None


class Affinity(Struct, frozen=True):
    nodeAffinity: NodeAffinity | None = None


class PodPlacement(Struct, frozen=True):
    """The fields of a pod's spec that select nodes."""

    nodeName: str = ""
    nodeSelector: Mapping[str, str] = EMPTY
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    hostNetwork: bool = False


# -- DaemonSets -------------------------------------------------------------------------------


class DaemonSetUpdateStrategy(Struct, frozen=True):
    type: str = ""
    rollingUpdate: RollingUpdate | None = None


class DaemonSetSpec(Struct, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    updateStrategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    minReadySeconds: int = 0
    revisionHistoryLimit: int | None = None


class DaemonSetStatus(Struct, frozen=True):
    """All fields, because the status is updated as a whole. Fields without default are always encoded."""

    currentNumberScheduled: int
    numberMisscheduled: int
    desiredNumberScheduled: int
    numberReady: int
    observedGeneration: int = 0
    updatedNumberScheduled: int = 0
    numberAvailable: int = 0
    numberUnavailable: int = 0
    collisionCount: int | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(Object, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus(
        currentNumberScheduled=0, numberMisscheduled=0, desiredNumberScheduled=0, numberReady=0
    )


DAEMONSETS = register(Kind("apps", "v1", "DaemonSet", "daemonsets", True, DaemonSet))
