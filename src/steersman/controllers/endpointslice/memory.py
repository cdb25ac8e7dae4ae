"""The memory of the EndpointSlice controller: what it has written and told, and the shares of the zones.

Losing it costs little: one more look at each Service, an event that hints are enabled told twice, and trigger times that
are those of the Services' creation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from steersman.api.ip_addresses import Family
from steersman.api.kinds.nodes import Node
from steersman.api.scheme import Key
from steersman.controllers.endpointslice.metrics import Totals
from steersman.controllers.endpointslice.topology import cpu_ratios, is_overloaded
from steersman.controllers.shared.endpoint_slices import SliceTracker
from steersman.controllers.shared.trigger_time import TriggerTimes


class HintedServices:
    """The Services with topology-aware hints, and the shares of the zones in the CPUs of all nodes."""

    def __init__(self) -> None:
        self._zones: dict[Key, dict[Family, Mapping[str, int]]] = {}
        self._populated: dict[Key, None] = {}
        self._ratios: dict[str, float] | None = None
        self._ratios_known = False

    def set(self, key: Key, family: Family, zones: Mapping[str, int]) -> bool:
        """Records the hints of a Service; returns whether it had none before."""
        self._zones.setdefault(key, {})[family] = zones
        new = key not in self._populated
        self._populated[key] = None
        return new

    def remove(self, key: Key, family: Family) -> bool:
        """Records that a Service has no hints in an IP family; returns whether it had some in any.

        As upstream, the Service then counts as one without hints, whatever the other family has.
        """
        families = self._zones.get(key)
        if families is not None:
            families.pop(family, None)
            if not families:
                del self._zones[key]
        if key not in self._populated:
            return False
        del self._populated[key]
        return True

    def forget(self, key: Key) -> None:
        """Drops a Service that is gone."""
        self._zones.pop(key, None)
        self._populated.pop(key, None)

    def ratios(self, nodes: Callable[[], Iterable[Node]]) -> Mapping[str, float] | None:
        """The `cpu_ratios` of the nodes, computed when first asked for after nodes changed."""
        if not self._ratios_known:
            self._ratios, self._ratios_known = cpu_ratios(nodes()), True
        return self._ratios

    def nodes_changed(self, nodes: Callable[[], Iterable[Node]]) -> list[Key]:
        """Computes the shares of the zones again; returns the Services that are overloaded in some zone then."""
        self._ratios_known = False
        if not self._zones:
            return []
        ratios = self.ratios(nodes)
        return [
            key
            for key, families in self._zones.items()
            if any(is_overloaded(zones, ratios) for zones in families.values())
        ]

    def __len__(self) -> int:
        return len(self._populated)


class Memory:
    """All that the controller keeps between rounds."""

    def __init__(self) -> None:
        self.tracker = SliceTracker()
        self.trigger_times = TriggerTimes()
        self.hinted = HintedServices()
        self.totals = Totals()

    def forget(self, key: Key) -> None:
        """Drops a Service that is gone."""
        # Its deletion was measured already, unless a round was under way that has counted it again.
        self.totals.set(key, None)
        self.trigger_times.forget(key)
        self.hinted.forget(key)
