"""cloud-node-lifecycle-controller (a service): deletes nodes whose instance is gone, and taints those that are shut down.

Only nodes that are not ready are asked about: each when it becomes so, and then once a period.

differs: upstream asks about all nodes one after the other, every period; here one slow answer holds up no other node.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

import msgspec

from steersman.api.cloud import NotSupported
from steersman.api.conditions import find_condition
from steersman.api.errors import ApiError, NotFound
from steersman.api.kinds.nodes import NODES, Node, Taint
from steersman.api.scheme import Key
from steersman.controllers.shared.flags import NODE_MONITOR_PERIOD
from steersman.intent.actions import Delete, Emit, Patch, PatchType
from steersman.intent.cloud import InstanceExists, InstanceShutDown
from steersman.intent.controller import Caches, Change, Controller, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import Rest, Verdict, Wake

SHUTDOWN = Taint(key="node.cloudprovider.kubernetes.io/shutdown", effect="NoSchedule")


def ready_status(node: Node) -> str:
    """The status of the condition Ready; Unknown without one."""
    condition = find_condition(node.status.conditions, "Ready")
    return condition.status if condition is not None else "Unknown"


def _is_shutdown_taint(taint: Taint) -> bool:
    # A taint is identified by its key and effect.
    return (taint.key, taint.effect) == (SHUTDOWN.key, SHUTDOWN.effect)


def add_shutdown_taint(node: Node) -> Patch[Node] | None:
    """The patch that adds the taint; None if it is there. A taint with another value is replaced in its place."""
    if any(_is_shutdown_taint(taint) and not taint.value for taint in node.spec.taints):
        return None
    taints = tuple(SHUTDOWN if _is_shutdown_taint(taint) else taint for taint in node.spec.taints)
    return _set_taints(node, taints if SHUTDOWN in taints else (*taints, SHUTDOWN))


def remove_shutdown_taint(node: Node) -> Patch[Node] | None:
    """The patch that removes the taint; None if it is not there."""
    taints = tuple(taint for taint in node.spec.taints if not _is_shutdown_taint(taint))
    return None if len(taints) == len(node.spec.taints) else _set_taints(node, taints)


def _set_taints(node: Node, taints: tuple[Taint, ...]) -> Patch[Node]:
    # The list is replaced as a whole, so it must not have changed meanwhile.
    body = {
        "metadata": {"uid": node.metadata.uid, "resourceVersion": node.metadata.resourceVersion},
        "spec": {"taints": [msgspec.to_builtins(taint) for taint in taints] or None},
    }
    return Patch(node, body, PatchType.STRATEGIC)


async def decide(node: Node, now: datetime, period: float = NODE_MONITOR_PERIOD.default) -> Verdict:
    if ready_status(node) == "True":
        removal = remove_shutdown_taint(node)
        if removal is None:
            return Rest("node is ready")
        await removal
        return Rest("node is ready again: taint removed")
    if not await InstanceExists(node):
        return await _delete(node, period)
    try:
        shut_down = await InstanceShutDown(node)
    except NotSupported:
        shut_down = False
    taint = add_shutdown_taint(node) if shut_down else None
    if taint is not None:
        await taint
    because = "instance is shut down" if shut_down else "instance exists"
    return Wake(timedelta(seconds=period), f"node is not ready; {because}")


async def _delete(node: Node, period: float) -> Verdict:
    name = node.metadata.name
    message = f"Deleting node {name} because it does not exist in the cloud provider"
    await Emit(node, "Normal", "DeletingNode", message)
    try:
        await Delete(node)
    except NotFound:
        return Rest("node is gone already")
    except ApiError as error:
        await Emit(node, "Warning", "DeletingNodeFailed", f"Failed deleting node {name}: {error}")
        return Wake(timedelta(seconds=period), f"node could not be deleted: {error}")
    return Rest("node deleted: its instance does not exist")


def _node_changed(caches: Caches, change: Change[Node]) -> Iterable[Key]:
    """A node that is not ready any more or again, or that gets or loses the taint."""
    old, new = change.old, change.new
    if new is None:
        return ()
    if old is not None and old is not new and _facts(old) == _facts(new):
        return ()
    return (new.key,)


def _facts(node: Node) -> tuple[str, str, bool]:
    return node.metadata.uid, ready_status(node), any(map(_is_shutdown_taint, node.spec.taints))


def configure(settings: Settings) -> Controller[Node]:
    period = settings[NODE_MONITOR_PERIOD]
    return Controller(
        name="cloud-node-lifecycle-controller",
        aliases=("cloud-node-lifecycle",),
        # As upstream: it has the role of the node controller.
        service_account="node-controller",
        event_component="cloud-node-lifecycle-controller",
        watches=(Watch(NODES, to=_node_changed),),
        workers=1,
        flags=(NODE_MONITOR_PERIOD,),
        configure=configure,
        decide=partial(decide, period=period),
        min_backoff=period,
        max_backoff=period,
        cloud="instances",
    )


controller = configure(DEFAULTS)
