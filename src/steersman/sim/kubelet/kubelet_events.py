"""The event recorder of simulated kubelets: one for all nodes, with the rate limit that each kubelet has."""

from __future__ import annotations

from steersman.api.clock import Clock
from steersman.api.generated import core_v1 as v1
from steersman.api.kinds import Object, ObjectReference
from steersman.client.api import Api
from steersman.runtime.event_recorder import QUEUED, Recorder
from steersman.sim.loop import background

QPS = 50.0
BURST = 100
"""Events of one node: a kubelet's ``eventRecordQPS`` and ``eventBurst``. Those above it are written later, or dropped where 1,000
wait, as a kubelet does."""
MAX_QUEUED = 20 * QUEUED
"""Event objects of all nodes that are on their way to the server."""


class KubeletEvents:
    """Events of the kubelets of some nodes."""

    def __init__(self, api: Api, clock: Clock, nodes: int) -> None:
        self._recorder = Recorder(
            api,
            clock,
            component="kubelet",
            qps=QPS,
            burst=BURST,
            queued=min(nodes * QUEUED, MAX_QUEUED),
        )

    def open(self) -> None:
        """Write events from now on, in the background: a world does not wait for those above the rate limit."""
        with background():
            self._recorder.open()

    async def close(self, timeout: float) -> None:
        """Write the events within the rate limit, for so many seconds at most."""
        if self._recorder.busy:
            await self._recorder.close(timeout)

    def is_full(self, node: str) -> bool:
        """Whether further events of a node are dropped: too many wait to be written."""
        return self._recorder.is_full(node)

    def emit(self, node: str, about: Object | ObjectReference, type: str, reason: str, message: str) -> None:
        """Record an event of the kubelet of a node."""
        self._recorder.emit(about, type, reason, message, host=node)


def pod_reference(pod: v1.Pod, field: str) -> ObjectReference:
    """The reference to a pod, or to a field of it, in an event."""
    meta = pod.metadata
    return ObjectReference(
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        apiVersion="v1",
        resourceVersion=meta.resourceVersion,
        fieldPath=field,
    )
