"""The shadow of a controller manager: our controllers over the informers of a cluster, deciding and writing nothing.

Every round is taken in by the `Comparison`. A key with open intentions is decided again whenever its objects change, and once more
when their grace time is over. What is still wanted then is looked at live, and is a difference if the cache was not behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from steersman.api.clock import Clock
from steersman.api.errors import (
    ApiError,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from steersman.api.kinds import NAMESPACES, PODS, Object
from steersman.api.meta import format_time
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.client.pager import PAGE_SIZE
from steersman.client.read_only import ReadOnlyApi
from steersman.intent.actions import Create
from steersman.intent.controller import Caches, Controller
from steersman.intent.settings import DEFAULTS, Settings
from steersman.intent.verdict import Rest, Wake
from steersman.runtime.action_table import read_file
from steersman.runtime.action_table.text import field_of
from steersman.runtime.causes import Timer
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.controller_runner import ControllerRunner
from steersman.runtime.event_recorder import Recorder
from steersman.runtime.informer import Informer
from steersman.runtime.ledger import Ledger
from steersman.runtime.metrics import Metrics
from steersman.runtime.reflector_state import Broken
from steersman.runtime.store import Store
from steersman.runtime.trace import Ending, Failure, Round, Trace, span
from steersman.shadow.comparison import UNKNOWN, Comparison, Intention
from steersman.shadow.intention import Effect, controller_uid
from steersman.shadow.report import Difference, ErrorEntry, Excluded, Report, figures
from steersman.shadow.shell import ShadowShell
from steersman.shadow.their_deletions import POD_GC, Deletion
from steersman.shadow.their_events import DELETIONS, Refusals
from steersman.shadow.their_writes import CREATED, TheirWrite, TheirWrites

GRACE = 30.0
"""Default grace time, in seconds."""
GRACE_OVER = Timer("grace time over")
MAX_DIFFERENCES = 1000
"""Differences that are kept one by one, and late ones; more are counted."""
MAX_POSTPONED = 5
"""How often a difference is put off because the cache is behind the server."""
POSTPONE = 2.0
"""Seconds by which it is put off."""
NOT_SYNCED = "its cache has not synced"
NOT_LISTED = "may not be listed with these credentials"
LASTING = (Forbidden, Unauthorized, Unreachable)
"""Errors of a watch that keep a cache from following the cluster."""
OWNED = "shadow: by controller"
"""The index of objects by the uid of their controller."""


class ShadowGroup(ControllerGroup):
    """A controller group whose shells imagine their writes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.shells: dict[str, ShadowShell] = {}
        self.refuse: Callable[[Create[Any]], ApiError | None] = lambda action: None
        """The error that the server would answer a create with."""
        super().__init__(*args, **options)

    def _make_shell(
        self, controller: Controller[Any], api: Api, recorder: Recorder, ledger: Ledger
    ) -> ShadowShell:
        shell = ShadowShell(
            api, recorder, ledger, self._clock, self.metrics, files=self._files, manager_api=self._api
        )
        shell.refuse = lambda action: self.refuse(action)
        self.shells[controller.name] = shell
        return shell

    def runner(self, name: str) -> ControllerRunner[Any] | None:
        """The runner of a controller."""
        return next((each for each in self.runners if each.controller.name == name), None)


class CachedCluster:
    """The caches of a group as a comparison sees them; a `ClusterView`."""

    def __init__(self, group: ControllerGroup) -> None:
        self._group = group
        self._informers: dict[str, Informer[Any]] = {}

    def store(self, resource: str) -> Store[Any] | None:
        """The store of a resource; None where no informer follows it."""
        found = self._informers.get(resource)
        if found is None or self._group.informers.known(found.kind) is not found:
            # Informers of custom resources come and go.
            self._informers = {}
            for informer in self._group.informers:
                if not informer.kind.fields:
                    self._informers.setdefault(informer.kind.resource, informer)
            found = self._informers.get(resource)
        return found.store if found is not None else None

    def owned(self, store: Store[Any], owner: str) -> Iterable[Object]:
        """The objects that have a controller, by its uid."""
        store.add_index(OWNED, _controllers)
        return store.by(OWNED, owner)

    def aspect(self, effect: Effect) -> object:
        store = self.store(effect.resource)
        if store is None or effect.verb == "delete all":
            return UNKNOWN
        if effect.creates and effect.key.name.endswith("*"):
            return frozenset(obj.metadata.uid for obj in self.owned(store, effect.owner))
        obj: Object | None = store.get(effect.key)
        if obj is None or (effect.uid and obj.metadata.uid != effect.uid):
            return None
        if effect.creates:
            return obj.metadata.uid
        if effect.deletes:
            return obj.metadata.deletionTimestamp
        if effect.verb == "update status" and hasattr(obj, "status"):
            return obj.status
        return obj.metadata.resourceVersion


def _controllers(obj: Object) -> Iterable[str]:
    uid = controller_uid(obj.metadata)
    return (uid,) if uid else ()


class Shadow:
    """Runs controllers beside another manager and compares."""

    def __init__(
        self,
        controllers: Iterable[Controller[Any]],
        api: Api,
        clock: Clock,
        *,
        grace: float = GRACE,
        settings: Settings = DEFAULTS,
        workers: Mapping[str, int] | None = None,
        files: Callable[[str], bytes] = read_file,
        excluded: Sequence[Excluded] = (),
        server: str = "",
        on_difference: Callable[[Difference], None] = lambda difference: None,
    ) -> None:
        """``api`` is only ever read from. ``excluded`` are the controllers that the report is to list as not compared."""
        self.api = ReadOnlyApi(api)
        self.trace = Trace(capacity=16)
        self.group = ShadowGroup(
            controllers,
            self.api,
            clock,
            workers=workers,
            metrics=Metrics(enabled=False),
            trace=self.trace,
            settings=settings,
            files=files,
            fence=lambda: False,
        )
        self.view = CachedCluster(self.group)
        self.comparison = Comparison(grace, self.view)
        self._refusals = Refusals(self.group.informers)
        self.group.refuse = self._refusal
        self.their_writes = TheirWrites(
            self.comparison, self, clock.monotonic, self._they_differ, self._they_collected
        )
        self.group.informers.informer(DELETIONS).subscribe(self.their_writes.told)
        for informer in self.group.informers:
            if informer.kind.resource in CREATED:
                informer.subscribe(partial(self.their_writes.changed, informer.kind))
        self.differences: list[Difference] = []
        self.late: deque[Difference] = deque(maxlen=MAX_DIFFERENCES)
        """The latest differences that were resolved."""
        self._clock = clock
        self._server = server
        self._excluded = tuple(excluded)
        self.on_difference = on_difference
        """Called with each difference when it is found."""
        self._started = clock.now()
        self._begun = clock.monotonic()
        self._reported: dict[Intention, Difference] = {}
        """Standing differences by their intention."""
        self._more = 0
        self._suspects: asyncio.Queue[Intention] = asyncio.Queue()
        self._suspected: dict[Intention, int] = {}
        """How often an intention was put off."""
        self.trace.listeners.append(self._take_in)

    async def run(self, synced: Callable[[], None] = lambda: None) -> None:
        """Decide until cancelled."""

        def ready() -> None:
            self.their_writes.active = True
            synced()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._investigate(), name="shadow: differences")
            tasks.create_task(self.their_writes.run(), name="shadow: their writes")
            await self.group.run(ready)

    # -- rounds -------------------------------------------------------------------------------

    def _take_in(self, number: int, round_: Round) -> None:
        name, key, now = round_.controller, round_.key, self._clock.monotonic()
        wanted = self.group.shells[name].take(key)
        if isinstance(round_.ending, Failure) and not wanted.failed:
            self.comparison.failed(name, key, round_.ending.error)
            return
        for ended in self.comparison.decided(name, key, wanted.effects, _words(round_.ending), now):
            self._resolve(ended)
        for intention in self.comparison.due((name, key), now):
            if intention not in self._suspected:
                self._suspected[intention] = 0
                self._suspects.put_nowait(intention)
        due = self.comparison.next_due((name, key), now)
        if due is not None:
            # Also what is a difference already: not every end of an intention enqueues its key.
            self._decide_again(name, key, due - now)

    def _decide_again(self, name: str, key: Key, after: float) -> None:
        runner = self.group.runner(name)
        if runner is not None:
            runner.queue.add_after(key, after, GRACE_OVER)

    def _refusal(self, action: Create[Any]) -> ApiError | None:
        owner = controller_uid(field_of(action.body, "metadata"))
        owned = self.owned(action.kind.resource, owner) if owner else ()
        times = [obj.metadata.creationTimestamp for obj in owned]
        newest = max((time for time in times if time is not None), default=None)
        return self._refusals.of(action, newest, self._clock.now())

    # -- asking our controllers about writes of the acting manager: `Asks` ---------------------

    def caches(self, controller: str) -> Caches | None:
        runner = self.group.runner(controller)
        return runner.caches if runner is not None else None

    async def ask(self, controller: str, caches: Caches, key: Key) -> list[Effect] | None:
        runner = self.group.runner(controller)
        seen = runner.controller.see(caches, key) if runner is not None else None
        if runner is None or seen is None:
            return None
        wanted, _ = await self.group.shells[controller].imagine(
            runner.controller.decide(seen, self._clock.now())
        )
        return wanted.effects

    def owner(self, kind: str, key: Key) -> Object | None:
        for informer in self.group.informers:
            if informer.kind.name == kind and not informer.kind.fields:
                found: Object | None = informer.store.get(key)
                return found
        return None

    def owned(self, resource: str, owner: str) -> Iterable[Object]:
        store = self.view.store(resource)
        return self.view.owned(store, owner) if store is not None else ()

    def pods(self) -> Iterable[Object]:
        store = self.view.store(PODS.resource)
        return store.list() if store is not None else ()

    def terminating(self, namespace: str) -> bool:
        store = self.view.store(NAMESPACES.resource)
        found = store.get(Key("", namespace)) if store is not None else None
        return store is not None and (found is None or found.metadata.deletionTimestamp is not None)

    def _they_collected(self, deletion: Deletion) -> None:
        because = self.comparison.verdicts.get((POD_GC, Key("", ""))) or "fewer than the threshold"
        self._add(
            Difference(
                "extra",
                POD_GC,
                f"{deletion.kind.name} {deletion.obj.key}",
                f"would not delete it; {because}",
                "deleted the oldest terminated pods, as the pod garbage collector does; no event tells who did",
                self._time(deletion.at),
                self._time(self._clock.monotonic()),
            )
        )

    def _they_differ(self, write: TheirWrite, because: str) -> None:
        self._add(
            Difference(
                "extra",
                write.controller,
                f"{write.kind.name} {write.obj.key}",
                f"would not {write.verb} it; {because}",
                f"{write.verb}d it for {write.owner}" + (f"; {write.told}" if write.told else ""),
                self._time(write.at),
                self._time(self._clock.monotonic()),
            )
        )

    # -- differences --------------------------------------------------------------------------

    async def _investigate(self) -> None:
        while True:
            intention = await self._suspects.get()
            try:
                theirs = await self._look(intention)
            except (ServerError, TooManyRequests, Unreachable):
                # What the acting manager did is not known while there is no answer.
                self._postpone(intention, self._suspected[intention])
                continue
            except ApiError as error:
                theirs = f"could not be read: {error}"
            postponed = self._suspected.pop(intention, 0)
            if not self.comparison.still_open(intention) or intention.settled:
                continue
            if theirs is None and postponed < MAX_POSTPONED:
                # The cache is behind the server: our controller may want something else once it is not.
                self._postpone(intention, postponed + 1)
                continue
            self._report(intention, theirs or "changes all the time")

    def _postpone(self, intention: Intention, times: int) -> None:
        self._suspected[intention] = times
        asyncio.get_running_loop().call_later(POSTPONE, self._suspect_again, intention)

    def _suspect_again(self, intention: Intention) -> None:
        if self.comparison.still_open(intention):
            self._suspects.put_nowait(intention)
        else:
            self._suspected.pop(intention, None)

    async def _look(self, intention: Intention) -> str | None:
        """The state on the server that contradicts an intention, in words; None where there is no difference yet."""
        effect = intention.effect
        store, kind = self.view.store(effect.resource), effect.type
        if effect.verb == "delete all" and kind is not None and await self._all_terminate(kind, effect):
            self.comparison.settle(intention)
            return None
        if kind is None or store is None or effect.key.name.endswith("*") or not effect.key.name:
            return f"nothing of it in {span(self._clock.monotonic() - intention.since)}"
        try:
            live = await self.api.get(kind.untyped, effect.key.namespace, effect.key.name)
        except NotFound:
            if effect.creates and store.get(effect.key) is None:
                return "no such object was created"
            # There is nothing left to write to: the next round of the key says so.
            self._decide_again(intention.controller, intention.key, 0.0)
            return None
        cached = store.get(effect.key)
        meta = live["metadata"]
        if effect.deletes and is_held(meta):
            self.comparison.settle(intention)
            return None
        if cached is None or cached.metadata.resourceVersion != meta.get("resourceVersion"):
            return None
        return f"left it as it is{last_writer(meta.get('managedFields') or ())}"

    async def _all_terminate(self, kind: Kind[Any], effect: Effect) -> bool:
        """Whether all objects that a collection still has are being deleted, and wait for kubelets or finalizers."""
        page = await self.api.list(kind.as_(Object), effect.key.namespace, limit=PAGE_SIZE)
        return all(item.metadata.deletionTimestamp is not None for item in page.items)

    def _report(self, intention: Intention, theirs: str) -> None:
        effect = intention.effect
        self.comparison.report(intention)
        times = f" ({intention.count} times)" if intention.count > 1 else ""
        difference = Difference(
            "missing",
            intention.controller,
            f"{effect.kind} {effect.key}",
            f"{effect.words}{times}; {intention.because}",
            theirs,
            self._time(intention.since),
            self._time(self._clock.monotonic()),
        )
        self._add(difference)
        self._reported[intention] = difference

    def _add(self, difference: Difference) -> None:
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(difference)
            self.on_difference(difference)
        else:
            self._more += 1

    def _resolve(self, intention: Intention) -> None:
        """A difference is wanted no more: the acting manager came to the same after the grace time, or the cause has gone."""
        difference = self._reported.pop(intention, None)
        if difference is None or intention.superseded:
            return
        difference.resolved = self._time(self._clock.monotonic())
        if difference in self.differences:
            self.differences.remove(difference)
            self.late.append(difference)
        else:
            self._more -= 1

    def _time(self, instant: float) -> str:
        moment: datetime = self._started + timedelta(seconds=instant - self._begun)
        return format_time(moment)

    # -- the report ---------------------------------------------------------------------------

    def report(self) -> Report:
        """The report of what has been found so far."""
        now = self._clock.monotonic()
        open_: dict[str, int] = {}
        for each in self.comparison.open:
            if not each.reported and not each.settled:
                open_[each.controller] = open_.get(each.controller, 0) + each.count
        return Report(
            self._server,
            format_time(self._started),
            format_time(self._clock.now()),
            round(now - self._begun, 3),
            self.comparison.grace,
            tuple(
                figures(name, self.comparison.tally(name), open_.get(name, 0))
                for name in sorted({each.controller.name for each in self.group.runners})
            ),
            tuple(self.differences),
            tuple(self.late),
            self._more,
            (*self._excluded, *self._unreadable()),
            tuple(self._errors()),
            dict(self.their_writes.unattributed),
        )

    def _unreadable(self) -> Iterator[Excluded]:
        """The resources that controllers of all resources may not list."""
        for informer in self._unsynced() if self.their_writes.active else ():
            if is_forbidden(informer):
                reason = f"the garbage collector's decisions about it: it {NOT_LISTED}"
                yield Excluded(informer.kind.resource, reason)

    def _unsynced(self) -> Iterable[Informer[Any]]:
        """The informers that are not synced, one of each resource."""
        return {each.kind.resource: each for each in self.group.informers.unsynced()}.values()

    def _errors(self) -> Iterator[ErrorEntry]:
        for informer in self._unsynced():
            if not is_forbidden(informer):
                yield ErrorEntry(informer.kind.resource, NOT_SYNCED)
            elif not self.their_writes.active:
                yield ErrorEntry(informer.kind.resource, f"{NOT_LISTED}, so nothing is compared")
        for informer in self.group.informers:
            state = informer.state
            if informer.synced and isinstance(state, Broken) and isinstance(state.error, LASTING):
                yield ErrorEntry(informer.kind.resource, f"its watch fails: {state.error}")
        for (name, key), error in self.comparison.failing.items():
            yield ErrorEntry(f"{name} {key}", error)
        if self.api.refused:
            yield ErrorEntry("shadow", f"{self.api.refused} writes were attempted and not sent")


def _words(ending: Ending) -> str:
    match ending:
        case Rest(because):
            return because
        case Wake(_, because):
            return because
        case Failure(error):
            return f"fails: {error}"


def is_forbidden(informer: Informer[Any]) -> bool:
    """Whether the server refuses to list a resource to these credentials."""
    state = informer.state
    return isinstance(state, Broken) and isinstance(state.error, Forbidden)


def is_held(meta: Mapping[str, Any]) -> bool:
    """Whether an object has been deleted and only finalizers keep it: another delete would change nothing."""
    return bool(meta.get("deletionTimestamp")) and not meta.get("deletionGracePeriodSeconds")


def last_writer(managed: Sequence[Mapping[str, Any]]) -> str:
    """The last writer of an object, by its managedFields; empty where they have no times."""
    timed = [each for each in managed if each.get("time")]
    if not timed:
        return ""
    last = max(timed, key=lambda each: str(each["time"]))
    what = f"{last.get('subresource')} " if last.get("subresource") else ""
    return f"; last written by {last.get('manager')} ({what}{last.get('operation', '')}) at {last['time']}"
