"""persistentvolume-attach-detach-controller (a dialogue): attaches volumes to the nodes whose pods use them.

A round is about one volume, by the unique name that nodes know it by (`controllers.shared.volumes`): `world` tells which
nodes want it and which have it, `reconciler` decides what to do about that, and `node_status` tells the kubelets. A volume
that several nodes may have at once has a round for each node, whose key has the name of the node as its namespace.
"""

from __future__ import annotations

from functools import partial

from steersman.api.kinds import PODS
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.storage import (
    CSIDRIVERS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
)
from steersman.controllers.attachdetach.enqueue import (
    attachment_changed,
    claim_changed,
    driver_changed,
    node_changed,
    pod_changed,
    volume_changed,
)
from steersman.controllers.attachdetach.memory import Memory
from steersman.controllers.attachdetach.metrics import METRICS
from steersman.controllers.attachdetach.operations import Config
from steersman.controllers.attachdetach.reconciler import decide
from steersman.controllers.attachdetach.world import (
    BY_ATTACHED,
    BY_INLINE_VOLUME,
    BY_NODE,
    BY_SOURCE,
    BY_VOLUME,
    World,
    by_attached,
    by_attachment_node,
    by_source,
    observe,
)
from steersman.controllers.shared.indexes import by_node
from steersman.controllers.shared.pod_claims import BY_CLAIM, claim_keys
from steersman.controllers.shared.volumes import by_inline_volume, by_volume
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS

SYNC_PERIOD = Flag(
    "attach-detach-reconcile-sync-period",
    60.0,
    "Below one second: as --disable-attach-detach-reconcile-sync. Otherwise without effect, as changes are seen at once.",
)
DISABLE_SYNC = Flag(
    "disable-attach-detach-reconcile-sync",
    False,
    "Do not attach a volume again that is reported as attached, but no longer is.",
)
DISABLE_FORCE_DETACH = Flag(
    "disable-force-detach-on-timeout",
    False,
    "Never detach a mounted volume from a node that is not ready, unless the node has the taint out-of-service.",
)
SHORTEST_SYNC_PERIOD = 1.0
LEND_AFTER = 0.5
"""Seconds that an attach or detach may hold up others. Upstream runs each in a goroutine of its own."""


def configure(settings: Settings) -> Controller[World]:
    config = Config(
        force_detach=not settings[DISABLE_FORCE_DETACH],
        verify=not settings[DISABLE_SYNC] and settings[SYNC_PERIOD] >= SHORTEST_SYNC_PERIOD,
    )
    return Controller(
        name="persistentvolume-attach-detach-controller",
        aliases=("attachdetach",),
        service_account="attachdetach-controller",
        watches=(
            Watch(
                PERSISTENTVOLUMES,
                to=volume_changed,
                indexes={BY_VOLUME: by_volume},
            ),
            Watch(PERSISTENTVOLUMECLAIMS, to=claim_changed),
            Watch(
                PODS,
                to=pod_changed,
                indexes={BY_CLAIM: claim_keys, BY_INLINE_VOLUME: by_inline_volume, "node": by_node},
            ),
            Watch(NODES, to=node_changed, indexes={BY_ATTACHED: by_attached}),
            Watch(
                VOLUMEATTACHMENTS,
                to=attachment_changed,
                indexes={BY_SOURCE: by_source, BY_NODE: by_attachment_node},
            ),
            Watch(CSIDRIVERS, to=driver_changed),
        ),
        # One round at a time, so that each finds the status of its node as the last one wrote it, unless a request hangs:
        # then its round waits, and the others go on.
        workers=1,
        lend_after=LEND_AFTER,
        flags=(SYNC_PERIOD, DISABLE_SYNC, DISABLE_FORCE_DETACH),
        configure=configure,
        observe=observe,
        decide=partial(decide, config=config),
        memory=Memory,
        metrics=METRICS,
    )


controller = configure(DEFAULTS)
