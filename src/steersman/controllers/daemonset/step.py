"""What a round wants written: pods on some nodes, and some pods away."""

from __future__ import annotations

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds import Pod
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.controllers.daemonset.template import Blueprint, target_of
from steersman.controllers.shared.pod_control import PodWrites, create_pods, delete_pods
from steersman.intent.actions import Emit

BURST = 250
"""The most pods created, and the most deleted, in one round; upstream's BurstReplicas."""


class Step(msgspec.Struct, frozen=True):
    """A change to be made."""

    create: tuple[str, ...] = ()
    """The nodes to get a pod."""
    ended: tuple[Pod, ...] = ()
    """Pods to go because they have ended."""
    delete: tuple[Pod, ...] = ()
    """Pods to go for any other reason."""

    def __bool__(self) -> bool:
        return bool(self.create or self.ended or self.delete)

    def first(self, count: int) -> Step:
        """As much of it as is done at once."""
        ended = self.ended[:count]
        return Step(self.create[:count], ended, self.delete[: count - len(ended)])


class Taken(msgspec.Struct, frozen=True):
    """What became of a step."""

    done: int = 0
    """How many pods were made or asked to go."""
    failure: ApiError | None = None
    whole: bool = True
    """Nothing was left for another round."""


async def take(daemonset: DaemonSet, step: Step, hash_: str) -> Taken:
    """Make pods, slow-start, and delete pods; all of it is tried."""
    now = step.first(BURST)
    made = gone = PodWrites()
    if now.create:
        blueprint = Blueprint.of(daemonset, hash_)
        made = await create_pods(daemonset, map(blueprint.pod, now.create))
    for pod in now.ended:
        await _tell(daemonset, pod)
    if going := (*now.ended, *now.delete):
        gone = await delete_pods(daemonset, going)
    return Taken(len(made.done) + len(gone.done), made.failure or gone.failure, now == step)


async def _tell(daemonset: DaemonSet, pod: Pod) -> None:
    """Say why a pod that has ended is to go."""
    where = f"daemon pod {pod.key} on node {target_of(pod)}"
    if pod.status.phase == "Failed":
        message = f"Found failed {where}, will try to kill it"
        await Emit(daemonset, "Warning", "FailedDaemonPod", message)
    else:
        message = f"Found succeeded {where}, will try to delete it"
        await Emit(daemonset, "Normal", "SucceededDaemonPod", message)
