"""The flags and feature gates of the horizontal-pod-autoscaler-controller."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from steersman.intent.settings import Flag, Settings

WORKERS = Flag("concurrent-horizontal-pod-autoscaler-syncs", 5)
SYNC_PERIOD = Flag(
    "horizontal-pod-autoscaler-sync-period", 15.0, "The period for syncing the number of pods of autoscalers."
)
DOWNSCALE_STABILIZATION = Flag(
    "horizontal-pod-autoscaler-downscale-stabilization",
    300.0,
    "The window in which the highest recommendation is applied, so that replicas do not go down too soon.",
)
CPU_INITIALIZATION_PERIOD = Flag(
    "horizontal-pod-autoscaler-cpu-initialization-period",
    300.0,
    "The period after a pod's start in which its CPU samples may be skipped.",
)
INITIAL_READINESS_DELAY = Flag(
    "horizontal-pod-autoscaler-initial-readiness-delay",
    30.0,
    "The period after a pod's start in which a change of readiness counts as the first.",
)
TOLERANCE = Flag(
    "horizontal-pod-autoscaler-tolerance",
    0.1,
    "The change of the ratio of usage to target that is too small to scale for.",
)
FLAGS: tuple[Flag[Any], ...] = (
    SYNC_PERIOD,
    DOWNSCALE_STABILIZATION,
    CPU_INITIALIZATION_PERIOD,
    INITIAL_READINESS_DELAY,
    TOLERANCE,
)


class Config(msgspec.Struct, frozen=True):
    """The controller's flags and feature gates."""

    sync_period: timedelta = timedelta(seconds=SYNC_PERIOD.default)
    downscale_stabilization: timedelta = timedelta(seconds=DOWNSCALE_STABILIZATION.default)
    cpu_initialization_period: timedelta = timedelta(seconds=CPU_INITIALIZATION_PERIOD.default)
    initial_readiness_delay: timedelta = timedelta(seconds=INITIAL_READINESS_DELAY.default)
    tolerance: float = TOLERANCE.default
    pod_level_resources: bool = True
    scale_to_zero: bool = False
    configurable_tolerance: bool = True

    @classmethod
    def of(cls, settings: Settings) -> Config:
        return cls(
            sync_period=timedelta(seconds=settings[SYNC_PERIOD]),
            downscale_stabilization=timedelta(seconds=settings[DOWNSCALE_STABILIZATION]),
            cpu_initialization_period=timedelta(seconds=settings[CPU_INITIALIZATION_PERIOD]),
            initial_readiness_delay=timedelta(seconds=settings[INITIAL_READINESS_DELAY]),
            tolerance=settings[TOLERANCE],
            pod_level_resources=settings.enabled("PodLevelResources"),
            scale_to_zero=settings.enabled("HPAScaleToZero"),
            configurable_tolerance=settings.enabled("HPAConfigurableTolerance"),
        )
