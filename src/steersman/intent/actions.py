"""What a controller may say: awaitable values, no I/O.

Awaiting an action hands it to whoever drives the coroutine (the live shell, an explainer, a test)
and receives the answer; a refusal is thrown into the coroutine as an `ApiError`. Actions are
frozen and compare by value, so a test states what a decision should say and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from enum import Enum
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.scheme import Kind
from steersman.intent.metrics import Metric

T = TypeVar("T")
O = TypeVar("O", bound=Object)

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]


class PatchType(Enum):
    """How a patch body is to be read; the value is its content type."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Action(msgspec.Struct, Generic[T], frozen=True):
    """Something to be done by the driver, whose answer is a ``T``."""

    def __await__(self) -> Generator[Action[T], T, T]:
        return (yield self)


class Write(Action[T], frozen=True):
    """An action that changes the cluster: fenced by leadership, remembered for read-your-writes."""


class Create(Write[T], frozen=True):
    """Create an object; answers with what the server made of it."""

    kind: Kind[T]
    namespace: str
    body: object


class UpdateStatus(Write[O], frozen=True):
    """Replace the status. The metadata goes along (annotations are written, labels are not).

    Not sent when the status is the one the object already has and no annotation changes.
    """

    obj: O
    status: object
    annotations: Mapping[str, str] | None = None
    """The annotations to write in the same request, where they differ; None leaves them."""


class Patch(Write[O], frozen=True):
    """Change some fields. Put ``metadata.uid`` or ``resourceVersion`` in the body to be exact."""

    obj: O
    body: Mapping[str, Any]
    type: PatchType = PatchType.MERGE
    subresource: str = ""
    manager: str = ""
    """The field manager; an applied patch needs one."""
    force: bool = False
    """Take fields over from other managers (applied patches only)."""


class Update(Write[O], frozen=True):
    """Put the object back as given: only for kinds whose view has all their fields.

    Elsewhere a field this program does not know would be lost: `Patch` or `Amend` keep it.
    """

    obj: O


class Amend(Write[O], frozen=True):
    """Change the live document and put it back, for where only ``update`` is granted.

    ``change`` edits the raw document in place; fields this program does not know survive.
    A conflict with another writer is answered by reading and changing anew.
    """

    obj: O
    change: Callable[[dict[str, Any]], None]


class Delete(Write[None], frozen=True):
    """Delete exactly this object: its uid is always a precondition."""

    obj: Object
    propagation: Propagation | None = None
    exact: bool = False
    """Also require the resourceVersion we know, so a change nobody looked at is never deleted."""
    grace: int | None = None


class Evict(Write[None], frozen=True):
    """Ask for a pod to go, respecting disruption budgets."""

    obj: Object


class ReadLive(Action[O], frozen=True):
    """Read the object from the server, past the cache. Raises `NotFound` when it is gone."""

    obj: O


class Ask(Action[T], frozen=True):
    """Post a question (a SubjectAccessReview, say) and get it back answered. Nothing is kept of it."""

    kind: Kind[T]
    namespace: str
    body: object


class Load(Action[bytes], frozen=True):
    """The content of a file the settings name (a key, a certificate), as it is now.

    Raises `Unreadable` where it cannot be read: controllers never open files themselves.
    """

    path: str


class Draw(Action[int], frozen=True):
    """Random bits, for what nobody may foresee: a serial number."""

    bits: int


class Unreadable(Exception):
    """A file that the settings name cannot be read. The message names it, never what is in it."""


class Emit(Action[None], frozen=True):
    """Record an event about an object. Best effort: it never fails a decision."""

    about: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    kind: Kind[Any] | None = None
    """What it is, where its type does not say."""


class Measure(Action[None], frozen=True):
    """Count something that the declaration of the controller says is counted. It is no part of a round's story."""

    metric: Metric
    value: float = 1.0
    labels: tuple[str, ...] = ()


class Elapsed(Action[float], frozen=True):
    """How long the round has taken so far, in seconds; for a `Measure`."""


class Done(msgspec.Struct, Generic[T], frozen=True):
    """An action of a batch that went through."""

    value: T


class Failed(msgspec.Struct, frozen=True):
    """An action of a batch that was refused."""

    error: ApiError


class Skipped(msgspec.Struct, frozen=True):
    """An action of a batch that was not tried, since earlier ones were refused."""


Outcome: TypeAlias = Done[T] | Failed | Skipped


class Batch(Action[list[Outcome[T]]], frozen=True):
    """Independent actions at once; answers one outcome each, in order, and never raises.

    Slow start tries 1, then 2, 4, 8 …, and stops after the first group with a failure, so a
    hopeless wish (a full quota) costs one refused request and not five hundred.
    """

    actions: tuple[Action[T], ...]
    slow_start: bool = True
