"""The declaration of a controller: what it watches, what it sees, what it decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import field

from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind
from steersman.intent.metrics import Measure, Metric
from steersman.intent.settings import Flag, Settings
from steersman.intent.verdict import Verdict

if TYPE_CHECKING:
    from steersman.intent.all_resources import Roam

__all__ = (
    "Cache",
    "Caches",
    "Change",
    "Controller",
    "Flag",
    "Index",
    "Settings",
    "Watch",
    "itself",
    "remembered",
)

O = TypeVar("O", bound=Object)
O_co = TypeVar("O_co", bound=Object, covariant=True)
S = TypeVar("S")

Index: TypeAlias = Callable[[Any], Iterable[Hashable]]
"""The values under which a cache files an object, for `Cache.by`."""


class Cache(Protocol[O_co]):
    """One kind as the controller knows it now. All reads are of one instant."""

    def get(self, key: Key) -> O_co | None: ...

    def list(self, namespace: str | None = None) -> Iterable[O_co]:
        """Everything, or everything in a namespace, in a stable order."""
        ...

    def by(self, index: str, value: Hashable) -> Iterable[O_co]:
        """The objects filed under a value of one of the watch's indexes, in a stable order."""
        ...


class Caches(Protocol):
    """The caches of a controller's watches."""

    def __getitem__(self, kind: Kind[O]) -> Cache[O]: ...


def remembered(caches: Caches) -> Any:
    """What the declaration's ``memory`` made."""
    if not hasattr(caches, "memory"):
        raise LookupError("a controller remembers only where its declaration has a memory")
    return caches.memory


class Change(msgspec.Struct, Generic[O], frozen=True):
    """What happened to one object: appeared (no old), changed, or went (no new)."""

    old: O | None
    new: O | None

    @property
    def obj(self) -> O:
        """The object as it is, or as it was last known."""
        obj = self.new if self.new is not None else self.old
        assert obj is not None
        return obj


def itself(caches: Caches, change: Change[Any]) -> Iterable[Key]:
    """A change of an object is a reason to look at that object."""
    key: Key = change.obj.key
    return (key,)


class Watch(msgspec.Struct, Generic[O], frozen=True):
    """A kind to follow, and which keys a change of it is a reason to look at."""

    kind: Kind[O]
    to: Callable[[Caches, Change[O]], Iterable[Key]] = itself
    when: Callable[[O], bool] | None = None
    """Only changes whose new (or last) state satisfies this count."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    after: float = 0.0
    """Seconds until a change is looked at: for where others must have time to see it, too."""
    counts: Callable[[Caches, Change[O]], Iterable[Measure]] | None = None
    """What there is to count about a change, whether or not it is a reason to look at anything."""


def first(controller: Controller[Any], caches: Caches, key: Key) -> Any:
    """The plain `observe`: the object of the first watch."""
    return caches[controller.watches[0].kind].get(key)


class Controller(msgspec.Struct, Generic[S], frozen=True):
    """A control loop, declared.

    The framework never runs a round on caches that have not yet seen the writes of the same key's
    earlier rounds, so a decision may trust what it sees.
    """

    name: str
    watches: tuple[Watch[Any], ...]
    decide: Callable[[S, datetime], Awaitable[Verdict]]
    workers: Flag[int] | int
    observe: Callable[[Caches, Key], S | None] | None = None
    """Reads all caches in one synchronous step; None: the key's object is gone, nothing to decide.
    Left out, a decision sees the object of the first watch."""
    account: str = ""
    """The ServiceAccount it acts as; upstream's name of it. Defaults to the name."""
    source: str = ""
    """The component that its events name. Defaults to the account."""
    aliases: tuple[str, ...] = ()
    root: bool = False
    """Acts as the manager itself, never as an account of its own: what accounts depend on."""
    pace: float = 0.0
    """The longest a key waits between two rounds, in seconds, so that a burst of changes on a busy
    server is answered by one status write instead of many. The first change is never delayed."""
    start: tuple[Key, ...] = ()
    """Keys that are due from the start and need no object: the one key of a loop that looks around
    every so often, say. Its rounds end in a `Wake`."""
    flags: tuple[Flag[Any], ...] = ()
    """The flags, beyond its workers, that `configure` and `enabled` read."""
    configure: Callable[[Settings], Controller[S]] | None = None
    """Builds this controller from flags and feature gates; None: it reads none.

    By convention a module's ``configure(settings)`` fills a frozen ``Config`` struct, binds it to ``observe`` and
    ``decide`` with `functools.partial`, and ends in ``controller = configure(DEFAULTS)``."""
    enabled: Callable[[Settings], bool] | None = None
    """Whether these settings let it run: a signer without a key does not. None: always."""
    gates: tuple[str, ...] = ()
    """Runs only while these feature gates are on."""
    off: bool = False
    """Runs only where ``--controllers`` names it."""
    memory: Callable[[], Any] | None = None
    """Makes what the controller keeps between rounds, once each time it runs: see `remembered`. It may hold
    only what stays true, for rounds may be repeated, or thought through and never carried out; and it is gone
    with the process, so nothing may depend on it but how soon something is done."""
    roams: Roam | None = None
    """Follows every resource there is, beyond its watches."""
    resync: float = 0.0
    """Seconds after which the objects of the first watch are looked at again, whatever happens; 0: never."""
    patience: float = 1000.0
    """The longest a key whose rounds keep failing waits for the next, in seconds."""
    qps: float = 1.0
    burst: float = 1.0
    """How many times as fast its client may be as others are."""
    metrics: tuple[Metric, ...] = ()
    """What its decisions and watches count."""
    needs: tuple[Kind[Any], ...] = ()
    """Runs only where the server serves these, beyond what every server serves."""

    def configured(self, settings: Settings) -> Controller[S] | None:
        """The controller as these settings want it; None when it is not to run.

        The answer no longer reads settings, so that configuring it again changes nothing.
        """
        if not all(map(settings.enabled, self.gates)):
            return None
        if self.enabled is not None and not self.enabled(settings):
            return None
        if self.configure is None and self.enabled is None:
            return self
        built = self if self.configure is None else self.configure(settings)
        return msgspec.structs.replace(built, configure=None, enabled=None)

    def see(self, caches: Caches, key: Key) -> S | None:
        if self.observe is not None:
            return self.observe(caches, key)
        seen: S | None = first(self, caches, key)
        return seen
