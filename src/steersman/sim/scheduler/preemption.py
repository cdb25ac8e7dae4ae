"""Whom a pod of higher priority may ask to go. Pure.

A simple rule: of the nodes that would do without their pods of lower priority, the one whose victims matter
least, then with the fewest. differs: disruption budgets are not looked at, nor is where other pods are.
"""

from __future__ import annotations

from steersman.sim.scheduler import filters
from steersman.sim.scheduler.node_info import Host, Hosts, Tenant


def victims(new: Tenant, hosts: Hosts) -> tuple[str, tuple[Tenant, ...]] | None:
    """A node and who would have to leave it, or None."""
    best: tuple[tuple[int, int, int], str, tuple[Tenant, ...]] | None = None
    for host in hosts:
        leaving = _leaving(new, host)
        if leaving:
            rank = (max(each.priority for each in leaving), len(leaving), host.index)
            if best is None or rank < best[0]:
                best = (rank, host.name, leaving)
    return best[1:] if best is not None else None


def _leaving(new: Tenant, host: Host) -> tuple[Tenant, ...]:
    """The least a node has to give up for a pod; nothing where that does not help, or is under way."""
    why = filters.refusals(new.demand, host)
    if not why or filters.is_helpless(why):
        return ()
    lower = [each for each in host.tenants.values() if each.priority < new.priority]
    if not lower or any(each.leaving for each in lower):
        return ()
    trial = Host(host.node, host.index)
    for each in host.tenants.values():
        if each.priority >= new.priority:
            trial.add(each)
    if filters.refusals(new.demand, trial):
        return ()
    gone = []
    for each in sorted(lower, key=lambda one: (-one.priority, one.key)):
        trial.add(each)
        if filters.refusals(new.demand, trial):
            trial.add(each, -1)
            gone.append(each)
    return tuple(gone)
