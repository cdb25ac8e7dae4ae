"""Conflicts of pods that use the same volume with different SELinux labels or change policies.

`UsedVolumes` is the controller's memory: what pods use, and which conflicts were reported. Losing it costs an event told twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from steersman.api.scheme import Key
from steersman.controllers.selinuxwarning.labels import labels_conflict
from steersman.intent.metrics import DropSeries, Measure, Metric

CONFLICTS = Metric(
    "selinux_warning_controller_selinux_volume_conflict",
    "Conflict between two Pods using the same volume",
    ("property", "pod1_namespace", "pod1_name", "pod1_value", "pod2_namespace", "pod2_name", "pod2_value"),
    gauge=True,
)
LABEL, CHANGE_POLICY = "SELinuxLabel", "SELinuxChangePolicy"
CONSEQUENCE = "If both pods land on the same node, only one of them may access the volume."


class Use(msgspec.Struct, frozen=True):
    """How a pod uses a volume."""

    volume: str
    """The unique name of the volume."""
    label: str
    """The label it is mounted with; empty: with none."""
    policy: str
    driver: str = ""
    """The CSI driver; empty for other plugins, whose support of labels does not change."""


class Conflict(msgspec.Struct, frozen=True):
    """A property in which two pods with the same volume differ, told to one of them."""

    property_name: str
    pod: Key
    value: str
    other: Key
    other_value: str

    @property
    def reason(self) -> str:
        """The reason of the event."""
        return f"{self.property_name}Conflict"

    @property
    def message(self) -> str:
        """The message of the event. It does not name a pod of another namespace."""
        name, value = self.property_name, f'"{self.value}"'
        if self.pod.namespace != self.other.namespace:
            # As upstream: without a space before the value.
            return (
                f"{name}{value} conflicts with another pod that uses the same volume as this pod "
                f"with a different {name}. {CONSEQUENCE}"
            )
        return (
            f"{name} {value} conflicts with pod {self.other.name} that uses the same volume as this pod "
            f'with {name} "{self.other_value}". {CONSEQUENCE}'
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The label values of the metric."""
        return self.property_name, *self.pod, self.value, *self.other, self.other_value


def conflicts_between(pod: Key, use: Use, other: Key, of_other: Use) -> Iterator[Conflict]:
    """The conflicts of two uses of a volume, each told to both pods."""
    if use.policy != of_other.policy:
        yield Conflict(CHANGE_POLICY, pod, use.policy, other, of_other.policy)
        yield Conflict(CHANGE_POLICY, other, of_other.policy, pod, use.policy)
    if labels_conflict(use.label, of_other.label):
        yield Conflict(LABEL, pod, use.label, other, of_other.label)
        yield Conflict(LABEL, other, of_other.label, pod, use.label)


class UsedVolumes:
    """The volumes that pods use, and the conflicts among those pods."""

    def __init__(self) -> None:
        self._users: dict[str, dict[Key, Use]] = {}
        """By volume and pod."""
        self._volumes: dict[Key, dict[str, None]] = {}
        """By pod: the names of its volumes."""
        self._conflicts: dict[str, list[Conflict]] = {}
        """By volume."""
        self._shown: Counter[Conflict] = Counter()
        """On how many volumes two pods have the same conflict: the metric shows it once."""

    def __contains__(self, pod: object) -> bool:
        return pod in self._volumes

    def users(self, volume: str) -> tuple[Key, ...]:
        """The pods that use a volume."""
        return tuple(self._users.get(volume, ()))

    def users_of_driver(self, driver: str) -> list[Key]:
        """The pods that use a volume of a CSI driver, each once."""
        users = (pod for uses in self._users.values() for pod, use in uses.items() if use.driver == driver)
        return list(dict.fromkeys(users))

    def conflicts(self) -> list[Conflict]:
        """The conflicts there are, each once."""
        return list(self._shown)

    def add(self, pod: Key, use: Use) -> tuple[list[Conflict], list[Measure | DropSeries]]:
        """Records how a pod uses a volume. Returns the conflicts to report, and what changes in the metric.

        What is known already is not reported again.
        """
        users = self._users.setdefault(use.volume, {})
        if users.get(pod) == use:
            return [], []
        users[pod] = use
        self._volumes.setdefault(pod, {})[use.volume] = None
        found = [
            conflict
            for other, of_other in users.items()
            if other != pod
            for conflict in conflicts_between(pod, use, other, of_other)
        ]
        return found, self._replace(use.volume, pod, found)

    def remove(self, pod: Key) -> list[Measure | DropSeries]:
        """Forgets a pod that has ended or is gone. Returns what changes in the metric."""
        changes: list[Measure | DropSeries] = []
        for volume in self._volumes.pop(pod, ()):
            changes += self._replace(volume, pod, [])
            users = self._users[volume]
            del users[pod]
            if not users:
                del self._users[volume]
        return changes

    def _replace(self, volume: str, pod: Key, found: list[Conflict]) -> list[Measure | DropSeries]:
        """Replaces the conflicts that a pod has on a volume."""
        known = self._conflicts.get(volume, [])
        past = [conflict for conflict in known if pod in (conflict.pod, conflict.other)]
        kept = [conflict for conflict in known if pod not in (conflict.pod, conflict.other)]
        self._conflicts[volume] = kept + found
        if not self._conflicts[volume]:
            del self._conflicts[volume]
        touched = dict.fromkeys([*past, *found])
        before = {conflict for conflict in touched if self._shown[conflict]}
        self._shown.update(found)
        self._shown.subtract(past)
        changes: list[Measure | DropSeries] = []
        for conflict in touched:
            if not self._shown[conflict]:
                del self._shown[conflict]
                changes.append(DropSeries(CONFLICTS, conflict.labels))
            elif conflict not in before:
                changes.append(Measure(CONFLICTS, 1.0, conflict.labels))
        return changes
