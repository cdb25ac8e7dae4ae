"""What is served: every built-in resource with its struct and its strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from steersman.api.errors import NotFound
from steersman.api.generated import Resource as Row
from steersman.api.generated import load, resources
from steersman.api.scheme import Kind
from steersman.server.defaulting import default_for, no_defaults
from steersman.server.defaulting.core import default_pod_status, default_service_status
from steersman.server.registry import (
    apiservice,
    certificatesigningrequest,
    daemonset,
    job,
    namespace,
    persistentvolume,
    pod,
    service,
)
from steersman.server.registry.strategy import (
    Counts,
    Dependents,
    Strategy,
    as_given,
    as_new,
    old_status,
    only_status,
    without_status,
)
from steersman.server.registry.versions import FACES, Face
from steersman.server.validation import rules_for


class Resource(msgspec.Struct, frozen=True, eq=False):
    """One served resource: how it is called, what it is made of, how it behaves."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    type: type[Any]
    strategy: Strategy
    subresources: tuple[str, ...] = ()
    serve: Callable[[Any], Any] | None = None
    """What clients see of a stored object; None where that is the object itself."""
    store: Callable[[Any], Any] | None = None
    """What is stored of an object that clients see; None likewise."""
    verbs: tuple[str, ...] | None = None
    """All that can be asked of it; None where the table of resources says, or its definition."""
    table: str = ""
    """Where its objects are: in a table of its own name, unless it shares another's."""
    hub: Resource | None = None
    """The resource whose objects are written in its stead, by the rules of that one."""
    id: str = ""
    """How RBAC and messages call it: ``deployments.apps``. Worked out, never given."""

    def __post_init__(self) -> None:
        force_setattr(self, "id", f"{self.plural}.{self.group}" if self.group else self.plural)
        if not self.table:
            force_setattr(self, "table", self.id)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Registry:
    """The resources of a server, made when first asked for."""

    def __init__(self) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in resources()}
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._kinds: dict[Kind[Any], Resource] = {}
        self.generation = 0
        """Counts what was added and removed, so that nobody need compare what is served."""

    def of(self, kind: Kind[Any]) -> Resource:
        """The resource a client means by a kind. Raises `NotFound` where none is served."""
        resource = self._kinds.get(kind)
        if resource is None:
            resource = self._kinds[kind] = self.find(kind.group, kind.version, kind.plural)
        return resource

    def find(self, group: str, version: str, plural: str) -> Resource:
        """The resource at a path. Raises `NotFound` where none is served."""
        key = group, version, plural
        resource = self._resources.get(key)
        if resource is None:
            row = self._rows.get(key)
            if row is None:
                raise NotFound("the server could not find the requested resource", reason="NotFound")
            face = FACES.get(key)
            hub = None
            if face is not None and face.through:
                # What is written this way has the defaults of its own version.
                like = self.find(*face.like)
                bare = replace(like.strategy, default=no_defaults, status_default=no_defaults)
                hub = replace(like, strategy=bare)
            resource = self._resources[key] = _resource(row, face, hub)
        return resource

    def serves(self, group: str, version: str, plural: str) -> bool:
        """Whether there is a resource at a path."""
        return (group, version, plural) in self._resources or (group, version, plural) in self._rows

    def add(self, resource: Resource) -> None:
        """Serve one more resource, or one in place of another."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self._kinds.clear()
        self.generation += 1

    def remove(self, resource: Resource) -> None:
        """Serve a resource no more that was added."""
        self._resources.pop((resource.group, resource.version, resource.plural), None)
        self._kinds.clear()
        self.generation += 1

    def added(self) -> tuple[Resource, ...]:
        """What is served beyond what was there from the beginning."""
        return tuple(resource for key, resource in self._resources.items() if key not in self._rows)

    def built_in(self, group: str, plural: str = "") -> bool:
        """Whether a resource is there from the beginning, in whichever version, or anything in a group."""
        return any(row[0] == group and plural in ("", row[2]) for row in self._rows)

    def fork(self) -> Registry:
        """The same resources, to add others to."""
        fork = Registry()
        fork._resources = dict(self._resources)
        return fork


def _resource(row: Row, face: Face | None, hub: Resource | None) -> Resource:
    type_ = load(row.group, row.version, row.kind).type
    id_ = f"{row.plural}.{row.group}" if row.group else row.plural
    return Resource(
        row.group,
        row.version,
        row.kind,
        row.plural,
        row.namespaced,
        type_,
        _strategy(row, id_, type_),
        tuple(subresource.name for subresource in row.subresources),
        serve=face.serve if face is not None else None,
        store=face.store if face is not None else None,
        table=face.table if face is not None else "",
        hub=hub,
    )


def _strategy(row: Row, id_: str, type_: type[Any]) -> Strategy:
    has_status = any(subresource.name == "status" for subresource in row.subresources)
    strategy = Strategy(
        default=default_for(row.group, row.kind, row.version),
        rules=rules_for(row.group, row.kind, row.version),
        created=without_status(type_) if has_status else as_given,
        updated=old_status if has_status else as_new,
        status_updated=only_status(_STATUS_KEEPS.get(id_, ())) if has_status else None,
        counts=_COUNTED.get(id_),
        create_on_update=id_ in _CREATED_BY_UPDATE,
        unconditional=id_ not in _CONDITIONAL,
        dependents=_DEPENDENTS.get(id_, "delete"),
        fields=_FIELDS.get(id_, {}),
        parts={"scale": as_new} if any(each.name == "scale" for each in row.subresources) else {},
    )
    return replace(strategy, **_PECULIAR.get(id_, {}))


# -- status -----------------------------------------------------------------------------------

_ALL_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_STATUS_KEEPS: Mapping[str, tuple[str, ...]] = {
    "apiservices.apiregistration.k8s.io": _ALL_METADATA,
    "deployments.apps": ("labels",),
    "flowschemas.flowcontrol.apiserver.k8s.io": _ALL_METADATA,
    "pods": ("ownerReferences",),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _ALL_METADATA,
    "resourceclaims.resource.k8s.io": _ALL_METADATA,
    "servicecidrs.networking.k8s.io": _ALL_METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _ALL_METADATA,
    "volumeattachments.storage.k8s.io": _ALL_METADATA,
}
"""The metadata a status update leaves alone; by default it writes all of it."""

# -- generations ------------------------------------------------------------------------------


def _field_changed(name: str) -> Counts:
    return lambda new, old: getattr(new, name) != getattr(old, name)


_spec_changed = _field_changed("spec")


def _deployment_changed(new: Any, old: Any) -> bool:
    # Annotations are copied to the ReplicaSets, so they count.
    return bool(new.spec != old.spec or new.metadata.annotations != old.metadata.annotations)


def _slice_changed(new: Any, old: Any) -> bool:
    same = replace(new, metadata=old.metadata) == old
    return not same or new.metadata.labels != old.metadata.labels


def _never(new: Any, old: Any) -> bool:
    return False


_COUNTED: Mapping[str, Counts] = {
    "customresourcedefinitions.apiextensions.k8s.io": _spec_changed,
    "cronjobs.batch": _spec_changed,
    "daemonsets.apps": _spec_changed,
    "deployments.apps": _deployment_changed,
    "deviceclasses.resource.k8s.io": _spec_changed,
    "endpointslices.discovery.k8s.io": _slice_changed,
    "flowschemas.flowcontrol.apiserver.k8s.io": _spec_changed,
    "ingressclasses.networking.k8s.io": _spec_changed,
    "ingresses.networking.k8s.io": _spec_changed,
    "jobs.batch": _spec_changed,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _spec_changed,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _spec_changed,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _field_changed("webhooks"),
    "networkpolicies.networking.k8s.io": _spec_changed,
    "poddisruptionbudgets.policy": _spec_changed,
    "pods": _spec_changed,
    "podtemplates": _field_changed("template"),
    "priorityclasses.scheduling.k8s.io": _never,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _spec_changed,
    "replicasets.apps": _spec_changed,
    "replicationcontrollers": _spec_changed,
    "resourceslices.resource.k8s.io": _spec_changed,
    "statefulsets.apps": _spec_changed,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _spec_changed,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _spec_changed,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _field_changed("webhooks"),
}

# -- updates ----------------------------------------------------------------------------------

_CREATED_BY_UPDATE = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    }
)

_CONDITIONAL = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Updates of these must say which version they change."""

# -- deletions --------------------------------------------------------------------------------

_DEPENDENTS: Mapping[str, Dependents] = {
    "events": "unsupported",
    "events.events.k8s.io": "unsupported",
    "jobs.batch": "orphan",
    "replicationcontrollers": "orphan",
}

# -- field selectors --------------------------------------------------------------------------


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _at(path: str) -> Callable[[Any], str]:
    parts = path.split(".")

    def read(obj: Any) -> str:
        for part in parts:
            obj = getattr(obj, part)
        return _text(obj)

    return read


_FIELDS: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": _at("spec.signerName")},
    "events": {
        **{
            f"involvedObject.{name}": _at(f"involvedObject.{name}")
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": _at("reason"),
        "reportingComponent": _at("reportingComponent"),
        "source": lambda event: event.source.component or event.reportingComponent,
        "type": _at("type"),
    },
    # Of the events of the core, as which they are stored.
    "events.events.k8s.io": {
        **{
            f"regarding.{name}": _at(f"involvedObject.{name}")
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": _at("reason"),
        "reportingController": _at("reportingComponent"),
        "type": _at("type"),
    },
    "jobs.batch": {"status.successful": _at("status.succeeded")},
    "namespaces": {"status.phase": _at("status.phase")},
    "nodes": {"spec.unschedulable": _at("spec.unschedulable")},
    "pods": {
        **{
            path: _at(path)
            for path in (
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            )
        },
    },
    "replicasets.apps": {"status.replicas": _at("status.replicas")},
    "replicationcontrollers": {"status.replicas": _at("status.replicas")},
    "secrets": {"type": _at("type")},
    "services": {"spec.clusterIP": _at("spec.clusterIP"), "spec.type": _at("spec.type")},
}

# -- what has a module of its own -------------------------------------------------------------

EVENT_TTL = 3600.0

_PECULIAR: Mapping[str, Mapping[str, Any]] = {
    "apiservices.apiregistration.k8s.io": {"created": apiservice.created},
    "certificatesigningrequests.certificates.k8s.io": {
        "created": certificatesigningrequest.created,
        "updated": certificatesigningrequest.updated,
        "status_updated": certificatesigningrequest.status_updated,
        "parts": {"approval": certificatesigningrequest.approved},
    },
    "daemonsets.apps": {"created": daemonset.created, "updated": daemonset.updated},
    "events": {"ttl": EVENT_TTL},
    "events.events.k8s.io": {"ttl": EVENT_TTL},
    "jobs.batch": {"created": job.created},
    "namespaces": {
        "created": namespace.created,
        "updated": namespace.updated,
        "parts": {"finalize": namespace.finalized},
        "ends": namespace.ends,
    },
    # Kubelets register nodes together with their status.
    "nodes": {"created": as_given},
    "persistentvolumes": {
        "created": persistentvolume.created,
        "status_updated": persistentvolume.status_updated,
    },
    "persistentvolumeclaims": {"created": persistentvolume.claim_created},
    "pods": {
        "created": pod.created,
        "status_updated": pod.status_updated,
        "status_default": default_pod_status,
        "parts": {"ephemeralcontainers": pod.joined, "resize": pod.resized},
        "grace": pod.grace,
    },
    "services": {
        "created": service.created,
        "updated": service.updated,
        "status_default": default_service_status,
    },
}
