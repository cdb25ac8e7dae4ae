"""Roles and bindings at work: an authorizer that follows the server's own, and what they keep people from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steersman.api.scheme import kind_of
from steersman.client.api import EventType
from steersman.server.admission.certificates import Allows
from steersman.server.admission.plugin import Lookups, Plugin
from steersman.server.auth import escalation
from steersman.server.auth.attributes import Attributes as Asked
from steersman.server.auth.rbac import GROUP, Authorizer, Policy
from steersman.server.auth.rbac_reconcile import reconcile
from steersman.server.auth.requester import REQUESTER
from steersman.server.rest import verbs
from steersman.server.server import Attributes, Server, Settle
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Commit, Selection

TABLES = tuple(
    f"{plural}.{GROUP}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
)


def policy(server: Server) -> list[Policy]:
    """All roles and bindings of a server."""
    return [obj for name in TABLES for obj in server.store.table(name).select(Selection())]


def follow(server: Server, known: Authorizer | None = None) -> Authorizer:
    """An authorizer that knows a server's roles and bindings, now and later.

    ``known`` is one that knows those there are already.
    """
    authorizer = Authorizer(policy(server)) if known is None else known

    def note(commit: Commit) -> None:
        if commit.resource in TABLES:
            if commit.event.type is EventType.DELETED:
                authorizer.remove(commit.obj)
            else:
                authorizer.put(commit.obj)

    server.store.commit_hooks.append(note)
    return authorizer


def install(server: Server) -> None:
    """Create what is missing of the roles and bindings a fresh server has."""

    def find(obj: Policy) -> Policy | None:
        resource = server.registry.find(GROUP, "v1", kind_of(obj).plural)
        found: Policy | None = server.table(resource).get(
            object_key(obj.metadata.namespace, obj.metadata.name)
        )
        return found

    for operation, obj in reconcile(find):
        resource = server.registry.find(GROUP, "v1", kind_of(obj).plural)
        namespace, name = obj.metadata.namespace, obj.metadata.name
        if operation == "update":
            server.rewrite(resource, namespace, name, lambda old, new=obj: new)  # type: ignore[misc]
            continue
        if operation == "recreate":
            server.remove(resource, object_key(namespace, name))
        verbs.create(server, resource, namespace, obj)


@dataclass(frozen=True, slots=True)
class Escalation(Plugin):
    """Nobody grants what they do not have. What the control plane does itself is not asked about."""

    authorizer: Authorizer

    name: ClassVar[str] = "RoleEscalation"
    validates: ClassVar[tuple[str, ...]] = TABLES

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        user = REQUESTER.get()
        if user is not None and request.obj is not None:
            escalation.check(
                self.authorizer,
                user,
                request.obj,
                request.old,
                namespace=request.namespace,
                # A create has no name in its path.
                name="" if request.operation == "CREATE" else request.name,
            )
        return None


def signers(authorizer: Authorizer) -> Allows:
    """Who may act for a signer: for this one, or for all of its domain."""

    def allows(user: str, verb: str, signer: str) -> bool:
        who = REQUESTER.get()
        if who is None:
            return True
        domain = f"{signer.partition('/')[0]}/*"
        return any(
            authorizer.authorize(Asked(who, verb, "certificates.k8s.io", "signers", name=name)).allowed
            for name in (signer, domain)
        )

    return allows
