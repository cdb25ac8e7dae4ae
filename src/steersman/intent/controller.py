"""The declaration of a controller: its watches, its caches, its decision and its settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import field

from steersman.api.cloud import CloudPart
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.metrics import Measure, Metric
from steersman.intent.settings import Flag, Settings
from steersman.intent.verdict import Verdict

if TYPE_CHECKING:
    from steersman.intent.all_resources import AllObjects, AllResources

__all__ = (
    "Cache",
    "Caches",
    "Change",
    "Controller",
    "Flag",
    "Index",
    "PartOf",
    "Settings",
    "Watch",
    "itself",
    "memory_of",
)

M = TypeVar("M")
O = TypeVar("O", bound=Object)
O_co = TypeVar("O_co", bound=Object, covariant=True)
S = TypeVar("S")

Index: TypeAlias = Callable[[Any], Iterable[Hashable]]
"""Computes the values under which a cache files an object, for `Cache.by`."""


class Cache(Protocol[O_co]):
    """The cached objects of one kind. All reads of one `observe` see the same instant."""

    def get(self, key: Key) -> O_co | None: ...

    def list(self, namespace: str | None = None) -> Iterable[O_co]:
        """All objects, or those of one namespace, in a stable order."""
        ...

    def by(self, index: str, value: Hashable) -> Iterable[O_co]:
        """The objects filed under a value of one of the watch's indexes, in a stable order."""
        ...


class Caches(Protocol):
    """All that `observe` may read: the caches of the controller's watches, and what else it declares."""

    def __getitem__(self, kind: Kind[O]) -> Cache[O]: ...

    @property
    def all_objects(self) -> AllObjects:
        """The objects of every resource. Raises `LookupError` unless the controller declares `follows_all`."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps, for the age of what the memory holds."""
        ...

    @property
    def memory(self) -> object:
        """The object that `Controller.memory` made; None without one. `memory_of` reads it with its type."""
        ...


def memory_of(caches: Caches, type_: type[M]) -> M:
    """The memory of a controller. Raises `LookupError` if its declaration makes no memory of this type."""
    memory = caches.memory
    if not isinstance(memory, type_):
        raise LookupError(f"the controller declares no memory of type {type_.__name__}")
    return memory


class Change(msgspec.Struct, Generic[O], frozen=True):
    """One change of an object: added (no old), updated, or deleted (no new)."""

    old: O | None
    new: O | None

    @property
    def obj(self) -> O:
        """The new state of the object, or the last known one if it was deleted."""
        obj = self.new if self.new is not None else self.old
        assert obj is not None
        return obj


def itself(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    """Maps a change to the key of the changed object."""
    key: Key = change.obj.key
    return (key,)


class Watch(msgspec.Struct, Generic[O], frozen=True):
    """A kind to watch, and the keys to enqueue when one of its objects changes."""

    kind: Kind[O]
    to: Callable[[Caches, Change[O]], Iterable[Key]] = itself
    when: Callable[[O], bool] | None = None
    """Ignores changes whose new (or last) state does not satisfy this."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    delay: float | Callable[[Change[O], datetime], float] = 0.0
    """Seconds until a change is enqueued, to give other controllers time to see it, too; or computes them from the
    change and the current time. 0 enqueues it at once."""
    measures: Callable[[Caches, Change[O]], Iterable[Measure]] | None = None
    """Metrics to update on a change, whether or not it enqueues a key."""


class PartOf(msgspec.Struct, frozen=True):
    """Makes a controller part of another one while a feature gate is off: ``--controllers`` then selects both by the
    name of the other."""

    controller: str
    unless: str
    """The feature gate that separates them."""


class Controller(msgspec.Struct, Generic[S], frozen=True):
    """A control loop.

    The runtime never runs a round of a key on caches that do not show the writes of the key's earlier rounds yet,
    so a decision may trust what it observes.
    """

    name: str
    watches: tuple[Watch[Any], ...]
    decide: Callable[[S, datetime], Awaitable[Verdict]]
    workers: Flag[int] | int
    observe: Callable[[Caches, Key], S | None] | None = None
    """Reads all caches in one synchronous step; None: the key's object is gone, nothing to decide.
    By default, the object of the first watch."""
    lend_after: float = 0.0
    """Seconds after which a round that still waits for an answer lends its place to other workers, so that a request that
    hangs holds up its own key only; 0: never. While requests are answered in time, `workers` is all there are."""
    service_account: str = ""
    """Upstream's name of the ServiceAccount it acts as. Defaults to the name."""
    event_component: str = ""
    """The source component of its events. Defaults to the service account."""
    aliases: tuple[str, ...] = ()
    as_manager: bool = False
    """Always acts as the manager itself, never as a service account: for controllers that service accounts need."""
    coalesce_within: float = 0.0
    """The longest a key waits between two rounds, in seconds, so that a burst of changes on a busy server leads to
    one status write instead of many. The first change is never delayed."""
    rest_after_round: bool = False
    """Whether a key rests after a round for as long as the round took, within `coalesce_within`: for rounds of many writes, of
    which each would be repeated for every few changes."""
    initial_keys: tuple[Key, ...] = ()
    """Keys to enqueue at start without an object: the one key of a periodic loop, say, whose rounds end in a `Wake`."""
    flags: tuple[Flag[Any], ...] = ()
    """The flags that `configure` and `enabled` read, besides `workers`."""
    configure: Callable[[Settings], Controller[S]] | None = None
    """Builds this controller from flags and feature gates; None: it reads none.

    By convention a module's ``configure(settings)`` fills a frozen ``Config`` struct, binds it to ``observe`` and
    ``decide`` with `functools.partial`, and ends in ``controller = configure(DEFAULTS)``."""
    enabled: Callable[[Settings], bool] | None = None
    """Whether these settings let it run: a signer without a key does not. None: always."""
    feature_gates: tuple[str, ...] = ()
    """Runs only while all of these feature gates are on."""
    part_of: PartOf | None = None
    """Upstream's way to separate a controller from another one by a feature gate."""
    disabled_by_default: bool = False
    """Runs only if ``--controllers`` names it."""
    memory: Callable[[], object] | None = None
    """Makes the object that the controller keeps between rounds, once each time it runs; `memory_of` reads it. It may
    only hold facts that stay true, for a round may be repeated or never carried out. It is lost with the process, so it
    may only affect how soon something is done."""
    works_on: tuple[Kind[Any], ...] = ()
    """The watched kinds of which one must have an object before there is anything to do, not even a metric to update; all
    of them by default. A cluster in a test starts the controller only then."""
    follows_all: AllResources | None = None
    """Follows every resource the server serves, besides the watches."""
    resync: float = 0.0
    """Seconds between two rounds of every object of the first watch without any change; 0: never."""
    min_backoff: float = 0.005
    """The back-off after the first failed round of a key, in seconds; it doubles with each further one."""
    max_backoff: float = 1000.0
    """The longest back-off of a key whose rounds keep failing, in seconds."""
    qps_factor: float = 1.0
    burst_factor: float = 1.0
    """Multiplies the client's rate limit for this controller."""
    metrics: tuple[Metric, ...] = ()
    """The metrics that its decisions and watches update."""
    required_kinds: tuple[Kind[Any], ...] = ()
    """Runs only where the server serves these optional kinds."""
    cloud: CloudPart | None = None
    """Runs only where the cloud provider has this part; None: everywhere."""

    def configured(self, settings: Settings) -> Controller[S] | None:
        """The controller for these settings; None when it is not to run.

        The answer no longer reads settings, so that configuring it again changes nothing.
        """
        if not all(map(settings.enabled, self.feature_gates)):
            return None
        if self.enabled is not None and not self.enabled(settings):
            return None
        if self.configure is None and self.enabled is None and not self.feature_gates:
            return self
        built = self if self.configure is None else self.configure(settings)
        return msgspec.structs.replace(built, configure=None, enabled=None, feature_gates=())

    def see(self, caches: Caches, key: Key) -> S | None:
        """Run `observe`, or read the object of the first watch."""
        if self.observe is not None:
            return self.observe(caches, key)
        seen: S | None = caches[self.watches[0].kind].get(key)
        return seen
