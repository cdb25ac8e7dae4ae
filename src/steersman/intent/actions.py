"""Actions: what a decision may ask for, as awaitable values without I/O.

Awaiting an action hands it to the driver of the coroutine (the live shell, an explainer, a row test) and
receives the answer; a refused request is thrown into the coroutine as an `ApiError`. Actions are frozen and
compare by value, so a test states the actions it expects and compares.

The target of an action is an object, or the `Address` of one. Each action is interpreted in one place,
`steersman.runtime.action_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ApiError
from steersman.api.kinds import Object
from steersman.api.scheme import Key, Kind

T = TypeVar("T")
O = TypeVar("O", bound=Object)
D = TypeVar("D", bound=Object | Mapping[str, Any])

Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]


class PatchType(Enum):
    """The format of a patch body; the value is its content type."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Address(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """Names an object without a copy of it: for resources that have no type of their own, or no cache."""

    kind: Kind[T]
    """The answer is decoded to the type of this kind."""
    namespace: str
    name: str
    uid: str = ""
    """The uid the object must have to be deleted or evicted; empty: any."""
    resource_version: str = ""
    """The resourceVersion last read, for `Delete.exact`."""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class Action(msgspec.Struct, Generic[T], frozen=True):
    """A request to the driver of a decision, answered with a ``T``."""

    def __await__(self) -> Generator[Action[T], T, T]:
        return (yield self)


class Write(Action[T], frozen=True):
    """An action that changes the cluster: fenced by leadership, remembered for read-your-writes."""


# -- writes -----------------------------------------------------------------------------------


class Create(Write[T], frozen=True):
    """Creates an object; the answer is the object as the server stored it."""

    kind: Kind[T]
    namespace: str
    body: object


class Update(Write[D], frozen=True):
    """Replaces an object, or a subresource of it, with a whole document (PUT).

    An object is put back as given. This is only safe for kinds whose view has all their fields: elsewhere
    unknown fields would be lost, and `Patch` or `ReadModifyWrite` keep them.
    """

    target: D | Address[D]
    body: Mapping[str, Any] | None = None
    """The document to send; an address needs one. None sends the object itself."""
    subresource: str = ""
    """The answer of a subresource is always a plain document: use an untyped kind."""


class UpdateStatus(Write[O], frozen=True):
    """Replaces the status. The metadata is sent along (the server takes annotations from it, but no labels).

    Not sent when the status equals that of the object and no annotation changes.
    """

    target: O
    status: object
    annotations: Mapping[str, str] | None = None
    """Annotations to write in the same request, if they differ; None leaves them alone."""


class Patch(Write[D], frozen=True):
    """Changes some fields. Put ``metadata.uid`` or ``resourceVersion`` in the body as a precondition.

    A list of operations is a JSON patch; its ``test`` operations are the preconditions.
    """

    target: D | Address[D]
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    type: PatchType = PatchType.MERGE
    subresource: str = ""
    field_manager: str = ""
    """Required for an apply patch."""
    force: bool = False
    """Take fields over from other field managers (apply patches only)."""


class ReadModifyWrite(Write[D], frozen=True):
    """Changes the live document and updates it, for controllers that are granted ``update`` but not ``patch``.

    Unknown fields survive. A conflict with another writer is retried on a fresh read.
    """

    target: D | Address[D]
    mutate: Callable[[dict[str, Any]], None]
    """Edits the raw document in place."""


class Delete(Write[None], frozen=True):
    """Deletes one object, with its uid as a precondition whenever the target has one."""

    target: Object | Address[Any]
    propagation: Propagation | None = None
    exact: bool = False
    """Also require the resourceVersion of the target, so that an unseen change is never deleted."""
    grace: int | None = None
    """The grace period in seconds; None leaves it to the server."""


class DeleteCollection(Write[None], frozen=True):
    """Deletes all objects of a kind in a namespace, in one request."""

    kind: Kind[Any]
    namespace: str
    propagation: Propagation | None = None


class Evict(Write[None], frozen=True):
    """Evicts a pod, respecting disruption budgets."""

    target: Object | Address[Any]


# -- reads, always from the server and never from a cache ---------------------------------------


class Read(Action[D], frozen=True):
    """Reads an object, or a subresource of it. Raises `NotFound` when it does not exist."""

    target: D | Address[D]
    subresource: str = ""
    """The answer of a subresource is always a plain document: use an untyped kind."""


class List(Action[list[T]], frozen=True):
    """Lists the objects of a kind in a namespace; ``""`` is all namespaces."""

    kind: Kind[T]
    namespace: str
    limit: int = 0
    """Stop after this many objects; 0: no limit."""
    label_selector: str = ""
    field_selector: str = ""
    as_manager: bool = False
    """Read with the rights of the manager's informers instead of the controller's own: for objects needed too
    rarely to cache."""


class LatestResourceVersion(Action[str], frozen=True):
    """Reads the resourceVersion that the list of a resource has reached."""

    kind: Kind[Any]


class CreateReview(Action[T], frozen=True):
    """Posts a review (a SubjectAccessReview, say) and returns it with its status. Nothing is stored."""

    kind: Kind[T]
    namespace: str
    body: object


class Discover(Action[DiscoveryResult], frozen=True):
    """Discovers the resources that the server serves. Raises when discovery fails as a whole."""


class ReadDocument(Action[dict[str, Any]], frozen=True):
    """Reads the JSON document at a path of the server: ``/openapi/v3/apis/apps/v1``. Raises `NotFound`."""

    path: str


# -- beyond the API server ------------------------------------------------------------------------


class ReadFile(Action[bytes], frozen=True):
    """Reads a file that the settings name (a key, a certificate). Raises `FileUnreadable`."""

    path: str


class FileUnreadable(Exception):
    """A file that the settings name cannot be read. The message names the file, never its content."""


class MakeDirectory(Action[None], frozen=True):
    """Makes a directory of this host, with its parents, unless it exists. Raises `DirectoryError`."""

    path: str


class RemoveDirectory(Action[None], frozen=True):
    """Removes a directory of this host with all that is in it, if it exists. Raises `DirectoryError`."""

    path: str


class DirectoryError(Exception):
    """A directory of this host cannot be made or removed."""


class RandomBits(Action[int], frozen=True):
    """Draws unpredictable random bits, for a serial number."""

    bits: int


class Emit(Action[None], frozen=True):
    """Records an event about an object. Best effort: it never fails a decision."""

    about: Object | Address[Any]
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


# -- batches --------------------------------------------------------------------------------------


class Done(msgspec.Struct, Generic[T], frozen=True):
    """The outcome of a batched action that succeeded."""

    value: T


class Failed(msgspec.Struct, frozen=True):
    """The outcome of a batched action that was refused."""

    error: ApiError


class Skipped(msgspec.Struct, frozen=True):
    """The outcome of a batched action that was not tried, because earlier ones failed."""


Outcome: TypeAlias = Done[T] | Failed | Skipped


class Batch(Action[list[Outcome[T]]], frozen=True):
    """Independent actions at once; answers one outcome each, in order, and never raises.

    Slow start tries 1, then 2, 4, 8 … actions and stops after the first group with a failure, so that a
    request that cannot succeed (a full quota) is refused once and not five hundred times.
    """

    actions: tuple[Action[T], ...]
    slow_start: bool = True

    def groups(self) -> Generator[tuple[Action[T], ...], list[Outcome[T]], list[Outcome[T]]]:
        """Yields the groups to try and receives the outcomes of each; returns the outcomes of all actions."""
        outcomes: list[Outcome[T]] = []
        rest = self.actions
        size = 1 if self.slow_start else len(rest)
        while rest:
            group, rest = rest[:size], rest[size:]
            tried = yield group
            outcomes += tried
            if any(isinstance(one, Failed) for one in tried):
                break
            size *= 2
        outcomes.extend(Skipped() for _ in rest)
        return outcomes
