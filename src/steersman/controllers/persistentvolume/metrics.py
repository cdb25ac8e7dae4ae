"""Metrics of the binder: how many volumes and claims are bound, and how long provisioning and deletion take."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.api.volume_binding import class_of_claim, mode_of
from steersman.controllers.persistentvolume.binding import BOUND
from steersman.controllers.persistentvolume.plugins import NOT_AVAILABLE, plugin_of
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure, Metric

TOTAL_VOLUMES = Metric(
    "pv_collector_total_pv_count",
    "Gauge measuring total number of persistent volumes",
    labels=("plugin_name", "volume_mode"),
    gauge=True,
    drops_zero=True,
)
BOUND_VOLUMES = Metric(
    "pv_collector_bound_pv_count",
    "Gauge measuring number of persistent volume currently bound",
    labels=("storage_class",),
    gauge=True,
    drops_zero=True,
)
UNBOUND_VOLUMES = Metric(
    "pv_collector_unbound_pv_count",
    "Gauge measuring number of persistent volume currently unbound",
    labels=("storage_class",),
    gauge=True,
    drops_zero=True,
)
BOUND_CLAIMS = Metric(
    "pv_collector_bound_pvc_count",
    "Gauge measuring number of persistent volume claim currently bound",
    labels=("namespace", "storage_class", "volume_attributes_class"),
    gauge=True,
    drops_zero=True,
)
UNBOUND_CLAIMS = Metric(
    "pv_collector_unbound_pvc_count",
    "Gauge measuring number of persistent volume claim currently unbound",
    labels=("namespace", "storage_class", "volume_attributes_class"),
    gauge=True,
    drops_zero=True,
)
OPERATION_ERRORS = Metric(
    "volume_operation_errors_total", "Total volume operation errors", labels=("plugin_name", "operation_name")
)
OPERATION_ERRORS_DEPRECATED = Metric(
    "volume_operation_total_errors", "Total volume operation errors", labels=("plugin_name", "operation_name")
)
OPERATION_SECONDS = Metric(
    "volume_operation_total_seconds",
    "Storage operation end to end duration in seconds",
    labels=("plugin_name", "operation_name"),
    buckets=(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0),
)
RETROACTIVE_CLASSES = Metric(
    "retroactive_storageclass_total",
    "Total number of retroactive StorageClass assignments to persistent volume claim",
)
RETROACTIVE_CLASS_ERRORS = Metric(
    "retroactive_storageclass_errors_total",
    "Total number of failed retroactive StorageClass assignments to persistent volume claim",
)
METRICS = (
    TOTAL_VOLUMES,
    BOUND_VOLUMES,
    UNBOUND_VOLUMES,
    BOUND_CLAIMS,
    UNBOUND_CLAIMS,
    OPERATION_ERRORS,
    OPERATION_ERRORS_DEPRECATED,
    OPERATION_SECONDS,
    RETROACTIVE_CLASSES,
    RETROACTIVE_CLASS_ERRORS,
)

Cell = tuple[Metric, tuple[str, ...]]
"""A metric and the values of its labels."""


class Counts:
    """The gauges of volumes and claims, kept up with each change."""

    def __init__(self) -> None:
        self._values: dict[Cell, int] = {}

    def volume_changed(self, change: Change[PersistentVolume]) -> Iterator[Measure]:
        return self._move(_volume_cells(change.old), _volume_cells(change.new))

    def claim_changed(self, change: Change[PersistentVolumeClaim]) -> Iterator[Measure]:
        return self._move(_claim_cells(change.old), _claim_cells(change.new))

    def _move(self, before: tuple[Cell, ...], after: tuple[Cell, ...]) -> Iterator[Measure]:
        for cell in before:
            if cell not in after:
                yield self._add(cell, -1)
        for cell in after:
            if cell not in before:
                yield self._add(cell, 1)

    def _add(self, cell: Cell, step: int) -> Measure:
        value = self._values.pop(cell, 0) + step
        if value:
            self._values[cell] = value
        return Measure(cell[0], value, cell[1])


def _volume_cells(volume: PersistentVolume | None) -> tuple[Cell, ...]:
    if volume is None:
        return ()
    counted = BOUND_VOLUMES if volume.status.phase == BOUND else UNBOUND_VOLUMES
    return (
        (TOTAL_VOLUMES, (plugin_of(volume) or NOT_AVAILABLE, mode_of(volume.spec))),
        (counted, (volume.spec.storageClassName,)),
    )


def _claim_cells(claim: PersistentVolumeClaim | None) -> tuple[Cell, ...]:
    if claim is None:
        return ()
    counted = BOUND_CLAIMS if claim.status.phase == BOUND else UNBOUND_CLAIMS
    labels = claim.metadata.namespace, class_of_claim(claim), claim.spec.volumeAttributesClassName or ""
    return ((counted, labels),)


def failed(plugin: str, operation: str) -> tuple[Measure, ...]:
    """Counts a failed operation, under both names."""
    labels = plugin or NOT_AVAILABLE, operation
    return (
        Measure(OPERATION_ERRORS, labels=labels),
        Measure(OPERATION_ERRORS_DEPRECATED, labels=labels),
    )
