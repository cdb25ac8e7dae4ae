"""daemonset (a decision): keep a pod on every node that is to have one.

A round finds the revision of the template, then mends what is missing or too much on each node (`place`), and
where nothing is, takes the next step of a rollout (`rolling`). Then it counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from steersman.api.errors import ApiError
from steersman.api.kinds import PODS, Object
from steersman.api.kinds.daemonsets import DAEMONSETS, DaemonSetStatus
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.revisions import CONTROLLERREVISIONS
from steersman.api.label_selectors import Selector, compile_selector
from steersman.controllers.daemonset.backoff import Memory
from steersman.controllers.daemonset.manage import place
from steersman.controllers.daemonset.nodes import hidden, survey
from steersman.controllers.daemonset.observe import Config, Seen, observe, of_node, of_pod, of_revision
from steersman.controllers.daemonset.revisions import Past, look_back, tidy
from steersman.controllers.daemonset.rolling import roll
from steersman.controllers.daemonset.status import counted, next_available
from steersman.controllers.daemonset.step import take
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.indexes import CONTROLLED
from steersman.intent.actions import Emit, UpdateStatus
from steersman.intent.controller import Controller, Flag, Settings, Watch
from steersman.intent.settings import DEFAULTS
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

PACE = 0.5
"""Seconds between two looks at one DaemonSet, at most: many pods becoming ready are one status write."""


async def decide(seen: Seen, now: datetime) -> Verdict:
    daemonset = seen.daemonset
    try:
        selector = compile_selector(daemonset.spec.selector)
    except ValueError as error:
        return Rest(f"cannot act: the selector is invalid: {error}")
    if selector.empty:
        message = "This daemon set is selecting all pods. A non-empty selector is required."
        await Emit(daemonset, "Warning", "SelectingAll", message)
        return Rest("cannot act: it selects all pods, a non-empty selector is required")
    if not selector.matches(daemonset.spec.template.metadata.labels):
        # differs: upstream relies on validation alone, and would make pods for ever that it does not find again.
        return Rest("cannot act: it does not select the pods it would make")
    if daemonset.metadata.deletionTimestamp is not None:
        # Its history may be gone before its pods are, so nobody can tell which are of which template.
        return Rest("being deleted")
    past = await _past(seen, selector)
    return await _go_on(seen, past, now) if isinstance(past, Past) else past


async def _past(seen: Seen, selector: Selector) -> Past | Wake:
    def selected(obj: Object) -> bool:
        return selector.matches(obj.metadata.labels)

    revisions = await claim(seen.daemonset, seen.revisions, seen.strays, selected)
    pods = await claim(seen.daemonset, seen.owned, seen.orphans, selected)
    return await look_back(seen.daemonset, revisions, pods)


async def _go_on(seen: Seen, past: Past, now: datetime) -> Verdict:
    daemonset = seen.daemonset
    stations = survey(seen.fits, past.pods)
    unread = hidden(past.pods)
    placed = place(daemonset, stations, past.hash, seen.failures, now, unread)
    step = placed.step
    failure: ApiError | InvalidSpec | None = None
    if not step and not unread and daemonset.spec.updateStrategy.type == "RollingUpdate":
        try:
            step = roll(daemonset, stations, past.hash, now)
        except InvalidSpec as nonsense:
            failure = nonsense
    taken = await take(daemonset, step, past.hash)
    failure = failure or taken.failure
    if failure is None and taken.done and taken.whole:
        # differs: upstream writes the status it had before the pods changed, and again when it sees them. They
        # show in the cache in a moment, and the round that follows writes it once, and tidies up.
        what = f"{len(step.create)} more, {len(step.ended) + len(step.delete)} fewer"
        return Rest(f"asked for pods ({what}); the next look will count them")
    failure = failure or await tidy(daemonset, past)
    status = counted(daemonset, stations, past.hash, now)
    await UpdateStatus(daemonset, status)
    if failure is not None:
        raise failure
    waits = [wait for wait in (placed.wait, next_available(daemonset, stations, now)) if wait is not None]
    return _verdict(status, waits)


def _verdict(status: DaemonSetStatus, waits: list[timedelta]) -> Verdict:
    desired = status.desiredNumberScheduled
    because = f"{status.numberAvailable} of {desired} nodes have a pod that serves"
    if status.updatedNumberScheduled < desired:
        because += f", {status.updatedNumberScheduled} one of the newest template"
    if not waits:
        return Rest(because)
    return Wake(min(waits), f"{because}; a pod becomes available then, or one that failed is replaced")


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(numeric_tolerations=settings.enabled("TaintTolerationComparisonOperators"))
    return Controller(
        name="daemonset-controller",
        aliases=("daemonset",),
        service_account="daemon-set-controller",
        event_component="daemonset-controller",
        watches=(
            Watch(DAEMONSETS),
            Watch(PODS, to=of_pod, indexes=CONTROLLED),
            Watch(CONTROLLERREVISIONS, to=of_revision, indexes=CONTROLLED),
            Watch(NODES, to=partial(of_node, config=config)),
        ),
        workers=Flag("concurrent-daemonset-syncs", 2),
        observe=partial(observe, config=config),
        decide=decide,
        configure=configure,
        memory=Memory,
        coalesce_within=PACE,
    )


controller = configure(DEFAULTS)
