"""The reconciler: attaches a volume to the nodes that want it, and detaches it from those that do not.

::

    no VolumeAttachment --create--> pending --status.attached--> attached --report--> reported, with an event
                                       |                                                 |
                                       | attachError, or 2 minutes                       | no pod wants it
                                       v                                                 v
                                  event, back-off                            mounted: wait for the kubelet,
                                                                            at most 6 minutes on a node not ready
                                                                                         |
    no VolumeAttachment <--driver-- deleting <--delete-- safe to detach <--live read-- unreported

A volume that one node at a time may have is detached from one node before it is attached to another, and its operations
wait for each other. Detaching comes first in a round. The operations of another volume do not know of each other: as with
upstream, one that hangs on a node holds up none on another.

differs: upstream looks at all volumes every 100 ms, and verifies every minute that they are attached; here each change is
handled when it happens.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

from steersman.api.errors import ApiError
from steersman.controllers.attachdetach.attach import attach, attach_order
from steersman.controllers.attachdetach.detach import detach
from steersman.controllers.attachdetach.memory import LastNodeState, VolumeMemory, VolumeUser
from steersman.controllers.attachdetach.metrics import count
from steersman.controllers.attachdetach.node_status import StatusWriteUnderWay
from steersman.controllers.attachdetach.operations import ROUND_DELAY, STATUS_WRITE_DELAY, Config, Progress
from steersman.controllers.attachdetach.world import World
from steersman.intent.verdict import Rest, Verdict, Wake


async def decide(seen: World, now: datetime, config: Config = Config()) -> Verdict:
    memory = seen.memory.volume(seen.name)
    remember(seen, memory)
    progress: list[Progress] = []
    failures: list[ApiError] = []
    reconciled = (*(node for node in seen.nodes if not node.desired), *attach_order(seen, memory))
    for node in reconciled:
        if node.name in memory.acting:
            # A round about all nodes of a volume that several may have meets those about one of them.
            progress.append(Progress(f"another round acts on {node.name}", ROUND_DELAY))
            continue
        memory.acting.add(node.name)
        try:
            step = attach if node.desired else detach
            progress.append(await step(seen, node, memory, config))
        except StatusWriteUnderWay as wait:
            progress.append(Progress(str(wait), STATUS_WRITE_DELAY))
        except ApiError as error:
            failures.append(error)
        finally:
            memory.acting.discard(node.name)
    await count(seen)
    if not (memory.users or memory.operations or memory.last_node_states or memory.acting):
        seen.memory.forget(seen.name)
    if failures:
        raise failures[0]
    waits = [each for each in progress if each.wait is not None]
    if waits:
        first = min(waits, key=lambda each: each.wait or 0.0)
        # Rounded up: under virtual time, a wait of nothing never ends.
        return Wake(timedelta(microseconds=ceil((first.wait or 0.0) * 1e6)), first.because)
    return Rest("; ".join(dict.fromkeys(each.because for each in progress)) or "not in use")


def remember(seen: World, memory: VolumeMemory) -> None:
    """Take in what must outlive the objects that show it."""
    users = {
        pod.metadata.uid: VolumeUser(pod.key, node.name, node.volume)
        for node in seen.nodes
        for pod in node.pods
    }
    seen.memory.set_users(seen.name, users, seen.only)
    for node in seen.nodes:
        if not node.desired and not node.present:
            if node.name not in memory.operations:
                memory.detached(node.name)
            continue
        if node.attachment is not None:
            seen.memory.attachments[node.attachment.metadata.name] = seen.name
        memory.last_node_states[node.name] = LastNodeState(node.managed and node.desired, node.mounted)
        if node.desired:
            memory.used[node.name] = None
        else:
            memory.waiting_reported.pop(node.name, None)
