"""The Server: a store, the registry of what is served from it, admission and auth, and a clock.

`steersman.server.rest` carries requests out on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.clock import Clock
from steersman.server import status_errors
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.auth.users import User
from steersman.server.calls import Answers, Outgoing, WebhookAddresses
from steersman.server.registry.graceful_deletion import DeletionOptions
from steersman.server.registry.object_meta import new_uid
from steersman.server.registry.resources import Registry, Resource
from steersman.server.storage.store import Store, Table, object_key

if TYPE_CHECKING:
    # Most servers in tests have neither.
    from steersman.server.auth.authentication import Authenticator
    from steersman.server.auth.rbac import RBACAuthorizer
    from steersman.server.auth.tokens import TokenIssuer
    from steersman.server.evaluation import EvaluationThread
    from steersman.server.kubelet_api import KubeletApi


MANAGER = "kube-apiserver"
"""The field manager of what the server writes of its own accord."""

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class RequestOptions(Protocol):
    """The options of a request that admission shows to webhooks and policies."""

    @property
    def user(self) -> User: ...
    @property
    def verb(self) -> str: ...
    @property
    def requested(self) -> Resource | None: ...
    @property
    def dry_run(self) -> bool: ...
    @property
    def named_manager(self) -> str: ...
    @property
    def field_validation(self) -> str: ...
    @property
    def force(self) -> bool: ...
    @property
    def patch_type(self) -> str: ...
    @property
    def deletion(self) -> DeletionOptions: ...


class ObjectView(msgspec.Struct, frozen=True):
    """How a subresource shows an object to admission: the scale of a workload."""

    group: str
    version: str
    kind: str
    type: type[Any]
    read: Callable[[Any], Any]
    """Makes the view of an object."""
    write: Callable[[Any, Any], Any]
    """The object with a changed view."""


class AdmissionAttributes(msgspec.Struct, frozen=True, gc=False):
    """A request as admission sees it. `Server.attributes` makes one; `msgspec.structs.replace` another with a changed object."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Any
    """The new object; None for a deletion."""
    old: Any
    """The existing object; None for a creation."""
    user: User
    options: RequestOptions | None = None
    """The request itself; None for what the server does of its own accord."""
    owners: Any = None
    """The ``managedFields`` that the object will have; None where they are its own."""
    view: ObjectView | None = None
    """How the object is shown; None as it is."""
    answers: Answers | None = None
    """The answers of webhooks; None before the first one is asked."""
    dry_run: bool = False


BeforeWrite: TypeAlias = Callable[[], None]
"""Records a request right before its object is written."""


class Admission(Protocol):
    """Changes or refuses requests. `steersman.server.admission` has kube-apiserver's plugins."""

    def mutate(self, request: AdmissionAttributes) -> Any:
        """Returns the object as it may be stored, or refuses."""
        ...

    def validate(self, request: AdmissionAttributes) -> BeforeWrite | None:
        """Refuses, or returns a function to call right before the object is written."""
        ...

    def warnings(self, request: AdmissionAttributes) -> tuple[str, ...]:
        """Returns the warnings for a request that was carried out."""
        ...


Reaction: TypeAlias = Callable[[Any], None]
"""Called with an object that was written or removed, after its watchers have been notified."""

Extension: TypeAlias = Callable[["Server"], object]


class Server:
    """An API server without a socket."""

    dry_run = False
    """Whether writes are discarded."""

    def __init__(self, clock: Clock, *, store: Store | None = None, names: Random | None = None) -> None:
        """``names`` is the source of generated names and uids; the clock's randomness by default."""
        self.clock = clock
        self.store = store or Store()
        self.registry = Registry()
        self.compaction_interval = timedelta(minutes=5)
        """The lifetime of continue tokens: upstream's etcd forgets what was, every five minutes."""
        self.page_times: dict[int, datetime] = {}
        """When the first page of a list at a revision was answered, for the latest such revisions."""
        self.admission: Admission | None = None
        """Called after the namespace's life cycle was checked. An extension installs it."""
        self.authenticator: Authenticator | None = None
        """Recognises users; None where requests arrive in process only."""
        self.authorizer: RBACAuthorizer | None = None
        """Decides what users may do; None where every request is allowed."""
        self.token_issuer: TokenIssuer | None = None
        """Issues the tokens of ServiceAccounts; None where there are no TokenRequests."""
        self.outgoing: Outgoing | None = None
        """The client for calls to webhooks; None where none can be called."""
        self.webhook_addresses = WebhookAddresses()
        """Where the webhooks of Services are served."""
        self.answers: Answers | None = None
        """The answers of webhooks that the request under way has; None for one that has asked none."""
        self.evaluation_thread: EvaluationThread | None = None
        """Evaluates expressions that cost much; None where the event loop does, which is under virtual time."""
        self.request_warnings: list[str] = []
        """The warnings of the request under way, for its client: of policies, and of rules that old values break."""
        self.audit_annotations: dict[str, str] | None = None
        """The audit annotations of the request under way; None where there is no audit log."""
        self.kubelets: KubeletApi | None = None
        """Answers for nodes: logs, commands, forwarded ports. None where there are no nodes."""
        self.reactions: dict[str, Reaction] = {}
        """By resource id: what the server does when one of its objects was written or removed."""
        self._extensions: tuple[Extension, ...] = ()
        self._names = names
        self._expiries: dict[str, deque[tuple[datetime, str, str]]] = {}
        """By table: when objects with a TTL expire, with their key and resourceVersion, in order."""

    @property
    def names(self) -> Random:
        """The source of generated names and uids."""
        if self.answers is not None:
            return self.answers.random
        return self._names or self.clock.random

    @contextmanager
    def answering(self, answers: Answers) -> Iterator[None]:
        """Carries out one run of a request that asks webhooks: with the answers, draws and time of its earlier runs."""
        answers.begin()
        self.answers = answers
        try:
            yield
        finally:
            self.answers = None

    def now(self) -> datetime:
        """The time as it is written into objects: in whole seconds."""
        if self.answers is not None:
            return self.answers.now
        now = self.clock.now()
        return now.replace(microsecond=0) if now.microsecond else now

    def annotate(self, key: str, value: str) -> None:
        """Adds an audit annotation to the request under way. As upstream, the first value of a key stays."""
        if self.audit_annotations is not None:
            self.audit_annotations.setdefault(key, value)

    def uid(self) -> str:
        """A new unique id."""
        return new_uid(self.names)

    def table(self, resource: Resource) -> Table:
        """The table of a resource, without objects that outlived their TTL."""
        table = self.store.table(resource.table)
        if resource.strategy.ttl is not None:
            self._expire(resource, table)
        return table

    def fork(self, clock: Clock | None = None, names: Random | None = None) -> Server:
        """A server with the same state that goes on separately. Only what extends the server is taken along."""
        fork = Server(clock or self.clock, store=self.store.fork(), names=names or self._names)
        fork.registry = self.registry.fork()
        fork.outgoing, fork.webhook_addresses = self.outgoing, self.webhook_addresses
        fork._expiries = {name: deque(due) for name, due in self._expiries.items()}
        for extension in self._extensions:
            fork.extend(extension)
        return fork

    def extend(self, extension: Extension) -> None:
        """Install an optional part. Forks install it, too."""
        self._extensions += (extension,)
        extension(self)

    # -- the only places that read and write one object ---------------------------------------

    def get(self, resource: Resource, namespace: str, name: str) -> Any:
        """One object. Raises `NotFound`."""
        obj = self.table(resource).get(object_key(namespace, name))
        if obj is None:
            raise status_errors.not_found(resource.group, resource.plural, name)
        return obj if resource.serve is None else resource.serve(obj)

    def write(self, resource: Resource, key: str, obj: Any, owners: Any = None) -> Any:
        """Store an object; returns it at its new version.

        ``owners`` are its new ``managedFields``; by default those it has.
        """
        meta = obj.metadata
        if owners is None:
            owners = meta.managedFields
        meta = replace(meta, resourceVersion=self.store.next_version, managedFields=owners)
        obj = replace(obj, metadata=meta)
        if resource.store is not None:
            obj = resource.store(obj)
        self.store.table(resource.table).put(key, obj)
        ttl = resource.strategy.ttl
        if ttl is not None:
            until = self.clock.now() + timedelta(seconds=ttl)
            due = self._expiries.setdefault(resource.table, deque())
            due.append((until, key, obj.metadata.resourceVersion))
        if self.reactions:
            self._react(resource, obj)
        return obj if resource.serve is None else resource.serve(obj)

    def remove(self, resource: Resource, key: str) -> Any:
        """Remove an object; returns its last state."""
        last = self.store.table(resource.table).remove(key)
        if self.reactions:
            self._react(resource, last)
        return last if resource.serve is None else resource.serve(last)

    def _react(self, resource: Resource, obj: Any) -> None:
        reaction = self.reactions.get(resource.id)
        if reaction is not None:
            reaction(obj)

    def rewrite(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        make: Callable[[Any], Any],
        *,
        uid: str = "",
        subresource: str = "",
    ) -> Any:
        """Change an object on the server's own account, past strategies and validation.

        With a ``subresource``, the server becomes the field manager of what it changed there.
        """
        old = self.get(resource, namespace, name)
        if uid and uid != old.metadata.uid:
            raise status_errors.uid_mismatch(
                resource.group, resource.plural, namespace, name, uid, old.metadata.uid
            )
        new = make(old)
        if new == old:
            return old
        owners = self.owners(resource, subresource, old, new) if subresource else None
        return self.write(resource, object_key(namespace, name), new, owners)

    def owners(self, resource: Resource, subresource: str, old: Any, new: Any) -> Any:
        """The ``managedFields`` of an object that the server has changed."""
        return field_manager_for(resource, subresource).updated(old, new, MANAGER, self.now())

    def attributes(
        self,
        operation: Operation,
        resource: Resource,
        subresource: str,
        namespace: str,
        name: str,
        obj: Any,
        old: Any,
        request: RequestOptions,
        owners: Any = None,
        view: ObjectView | None = None,
    ) -> AdmissionAttributes:
        """A request as admission sees it, in this run of it."""
        return AdmissionAttributes(
            operation,
            resource,
            subresource,
            namespace,
            name,
            obj,
            old,
            request.user,
            request,
            owners,
            view,
            self.answers,
            self.dry_run,
        )

    def admit(self, request: AdmissionAttributes) -> Any:
        """Run mutating admission; returns the object as it may be stored."""
        return request.obj if self.admission is None else self.admission.mutate(request)

    def validate(self, request: AdmissionAttributes) -> BeforeWrite | None:
        """Run validating admission; returns a function to call right before the object is written."""
        return None if self.admission is None else self.admission.validate(request)

    # -- objects with a TTL -------------------------------------------------------------------

    def renew(self, resource: Resource) -> None:
        """Restart the TTL of all objects of a resource, as etcd renews its leases when it starts again."""
        ttl, table = resource.strategy.ttl, self.store.table(resource.table)
        if ttl is not None:
            until = self.clock.now() + timedelta(seconds=ttl)
            found = ((key, table.get(key)) for key in table.keys())  # noqa: SIM118  (a table is no dict)
            self._expiries[resource.table] = deque(
                (until, key, obj.metadata.resourceVersion) for key, obj in found if obj is not None
            )

    def _expire(self, resource: Resource, table: Table) -> None:
        """Remove the objects whose TTL is over. Runs before each use of the table, so no timer is needed."""
        due = self._expiries.get(resource.table)
        if not due:
            return
        now = self.clock.now()
        while due and due[0][0] <= now:
            _, key, version = due.popleft()
            obj = table.get(key)
            if obj is not None and obj.metadata.resourceVersion == version:
                # Also within a dry run: expiry is no part of the request.
                Server.remove(self, resource, key)
