"""Registry: every served resource with its struct and its strategy, and the tables of built-in strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import NotFound
from steersman.api.generated import Resource as Row
from steersman.api.generated import gated_resources, load, resources
from steersman.api.generated.apiregistration_v1 import APIService, APIServiceCondition, APIServiceStatus
from steersman.api.scheme import Kind, same_encoding
from steersman.server.defaulting import default_for, no_defaults
from steersman.server.defaulting.core import default_pod_status, default_service_status
from steersman.server.registry import certificatesigningrequest, core, devices, pod, podgroup, workloads
from steersman.server.registry.conversion import CONVERTED_VERSIONS, ConvertedVersion
from steersman.server.registry.strategy import (
    DefaultPropagation,
    GenerationTest,
    Strategy,
    WriteContext,
    clear_status,
    keep_status,
    prepare_nothing,
    replace_all,
    update_status_only,
)
from steersman.server.validation import rules_for

REVIEWS = frozenset(
    {
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "tokenreviews.authentication.k8s.io",
    }
)
"""The resources that are created and answered, but never stored; so are Bindings."""


class Resource(msgspec.Struct, frozen=True, eq=False):
    """One served resource at one version: its names, its type and its strategy."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    type: type[Any]
    strategy: Strategy
    subresources: tuple[str, ...] = ()
    serve: Callable[[Any], Any] | None = None
    """Converts a stored object to this version; None if they are the same."""
    store: Callable[[Any], Any] | None = None
    """Converts an object of this version to the stored one; None if they are the same."""
    convert: Callable[[Any, Resource], Any] | None = None
    """Converts an object of this version to another version of the same resource; None if ``store`` and ``serve`` do."""
    serve_all: Callable[[Sequence[Any]], None] | None = None
    """Converts stored objects to this version at once, before `serve` is called for each; None if that gains nothing."""
    verbs: tuple[str, ...] | None = None
    """The supported verbs; None if the generated table or the CustomResourceDefinition decides."""
    table: str = ""
    """The table of its objects in the store; its own id, unless it shares a table."""
    hub: Resource | None = None
    """The stored version by whose strategy objects are written; None if it is this one."""
    id: str = ""
    """The name in RBAC and messages: ``deployments.apps``. Computed, never passed."""

    def __post_init__(self) -> None:
        force_setattr(self, "id", f"{self.plural}.{self.group}" if self.group else self.plural)
        if not self.table:
            force_setattr(self, "table", self.id)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Registry:
    """The resources of a server, each made on first use."""

    def __init__(self) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in resources()}
        self.gates: frozenset[str] = frozenset()
        """The feature gates given to `enable`."""
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._kinds: dict[Kind[Any], Resource] = {}
        self.generation = 0
        """Incremented when a resource is added or removed; caches compare it."""
        self.discovered: DiscoveryResult | None = None
        """The discovery of these resources; None until a client asks for it."""

    def of(self, kind: Kind[Any]) -> Resource:
        """The resource of a kind. Raises `NotFound` if it is not served."""
        resource = self._kinds.get(kind)
        if resource is None:
            resource = self._kinds[kind] = self.find(kind.group, kind.version, kind.plural)
        return resource

    def find(self, group: str, version: str, plural: str) -> Resource:
        """The resource by group, version and plural. Raises `NotFound` if it is not served."""
        key = group, version, plural
        resource = self._resources.get(key)
        if resource is None:
            row = self._rows.get(key)
            if row is None:
                raise NotFound("the server could not find the requested resource", reason="NotFound")
            converted = CONVERTED_VERSIONS.get(key)
            hub = None
            if converted is not None and converted.written_as_stored:
                # Defaulting happens in the version of the request, before conversion.
                like = self.find(*converted.stored_as)
                bare = replace(like.strategy, default=no_defaults, status_default=no_defaults)
                hub = replace(like, strategy=bare)
            resource = self._resources[key] = _resource(row, converted, hub, self.gates)
        return resource

    def enable(self, gates: Iterable[str]) -> None:
        """Serves the resources that feature gates add, and the fields of these that others add.

        differs: kube-apiserver serves them if ``--runtime-config`` names their version, besides.
        """
        self.gates = frozenset(gates)
        for row in gated_resources():
            if row.gate in self.gates:
                self._rows[row.group, row.version, row.plural] = row
        self._changed()

    def rows(self) -> tuple[Row, ...]:
        """The built-in resources, in the order of discovery."""
        return tuple(self._rows.values())

    def serves(self, group: str, version: str, plural: str) -> bool:
        """Whether a resource is served."""
        return (group, version, plural) in self._resources or (group, version, plural) in self._rows

    def add(self, resource: Resource) -> None:
        """Serves a resource, in place of any other of the same group, version and plural."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self._changed()

    def remove(self, resource: Resource) -> None:
        """Stops serving a resource that was added."""
        self._resources.pop((resource.group, resource.version, resource.plural), None)
        self._changed()

    def _changed(self) -> None:
        self._kinds.clear()
        self.generation += 1
        self.discovered = None

    def added(self) -> tuple[Resource, ...]:
        """The resources that are not built in."""
        return tuple(resource for key, resource in self._resources.items() if key not in self._rows)

    def plural_of(self, group: str, version: str, kind: str) -> str:
        """The plural of a kind that is served at a version; empty if there is none."""
        served: list[Resource | Row] = [*self._resources.values(), *self._rows.values()]
        names = (group, version, kind)
        return next((each.plural for each in served if (each.group, each.version, each.kind) == names), "")

    def built_in(self, group: str, plural: str = "") -> bool:
        """Whether a resource is built in at any version, or, without ``plural``, any resource of the group."""
        return any(row[0] == group and plural in ("", row[2]) for row in self._rows)

    def fork(self) -> Registry:
        """An independent copy."""
        fork = copy(self)
        fork._rows, fork._resources, fork._kinds = dict(self._rows), dict(self._resources), dict(self._kinds)
        return fork


def _resource(
    row: Row, converted: ConvertedVersion | None, hub: Resource | None, gates: frozenset[str]
) -> Resource:
    type_ = load(row.group, row.version, row.kind).type
    id_ = f"{row.plural}.{row.group}" if row.group else row.plural
    return Resource(
        row.group,
        row.version,
        row.kind,
        row.plural,
        row.namespaced,
        type_,
        _strategy(row, id_, type_, gates),
        tuple(subresource.name for subresource in row.subresources),
        serve=converted.serve if converted is not None else None,
        store=converted.store if converted is not None else None,
        table=converted.table if converted is not None else "",
        hub=hub,
    )


_DEFAULTED_STATUS = frozenset(
    {
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "resourceclaims.resource.k8s.io",
        "resourcequotas",
    }
)
"""Resources with defaults or quantities in their status. Upstream sets all defaults of an object that is sent, whatever is updated."""


def _strategy(row: Row, id_: str, type_: type[Any], gates: frozenset[str]) -> Strategy:
    has_status = any(subresource.name == "status" for subresource in row.subresources)
    default = default_for(row.group, row.kind, row.version)
    strategy = Strategy(
        default=default,
        status_default=default if id_ in _DEFAULTED_STATUS else no_defaults,
        rules=rules_for(row.group, row.kind, row.version),
        prepare_for_create=clear_status(type_) if has_status else prepare_nothing,
        prepare_for_update=keep_status if has_status else replace_all,
        prepare_for_status_update=update_status_only(_KEPT_BY_STATUS_UPDATE.get(id_, ()))
        if has_status
        else None,
        changes_generation=_GENERATION_TESTS.get(id_),
        allow_create_on_update=id_ in _ALLOW_CREATE_ON_UPDATE,
        allow_unconditional_update=id_ not in _REQUIRE_RESOURCE_VERSION,
        default_propagation=_DEFAULT_PROPAGATION.get(id_, "delete"),
        selectable_fields=_SELECTABLE_FIELDS.get(id_, {}),
        subresource_updates={"scale": replace_all}
        if any(each.name == "scale" for each in row.subresources)
        else {},
    )
    by_gates = _GATED_STRATEGIES.get(id_)
    return replace(
        strategy, **_KIND_STRATEGIES.get(id_, {}), **(by_gates(gates) if by_gates is not None else {})
    )


# -- status -----------------------------------------------------------------------------------

_ALL_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_KEPT_BY_STATUS_UPDATE: Mapping[str, tuple[str, ...]] = {
    "apiservices.apiregistration.k8s.io": _ALL_METADATA,
    "deployments.apps": ("labels",),
    "flowschemas.flowcontrol.apiserver.k8s.io": _ALL_METADATA,
    "pods": ("ownerReferences",),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _ALL_METADATA,
    "devicetaintrules.resource.k8s.io": _ALL_METADATA,
    "resourcepoolstatusrequests.resource.k8s.io": _ALL_METADATA,
    "servicecidrs.networking.k8s.io": _ALL_METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _ALL_METADATA,
    "volumeattachments.storage.k8s.io": _ALL_METADATA,
}
"""The metadata fields a status update keeps; by default it writes all of them."""

# -- generations ------------------------------------------------------------------------------


def _field_changed(name: str) -> GenerationTest:
    return lambda new, old: getattr(new, name) != getattr(old, name)


_spec_changed = _field_changed("spec")


def _deployment_changed(new: Any, old: Any) -> bool:
    # Annotations are copied to the ReplicaSets, so they increment the generation.
    return bool(new.spec != old.spec or new.metadata.annotations != old.metadata.annotations)


def _slice_changed(new: Any, old: Any) -> bool:
    same = replace(new, metadata=old.metadata) == old
    return not same or new.metadata.labels != old.metadata.labels


def _never(new: Any, old: Any) -> bool:
    return False


_GENERATION_TESTS: Mapping[str, GenerationTest] = {
    "customresourcedefinitions.apiextensions.k8s.io": _spec_changed,
    "cronjobs.batch": _spec_changed,
    "daemonsets.apps": _spec_changed,
    "deployments.apps": _deployment_changed,
    "deviceclasses.resource.k8s.io": lambda new, old: not same_encoding(new.spec, old.spec),
    "devicetaintrules.resource.k8s.io": _spec_changed,
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

_ALLOW_CREATE_ON_UPDATE = frozenset(
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

_REQUIRE_RESOURCE_VERSION = frozenset(
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
        "resourcepoolstatusrequests.resource.k8s.io",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Resources whose updates must have a resourceVersion."""

# -- deletions --------------------------------------------------------------------------------

_DEFAULT_PROPAGATION: Mapping[str, DefaultPropagation] = {
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


def _field_reader(path: str) -> Callable[[Any], str]:
    get = attrgetter(path)

    def read(obj: Any) -> str:
        value = get(obj)
        return value if type(value) is str else _text(value)

    return read


_SELECTABLE_FIELDS: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": _field_reader("spec.signerName")},
    "events": {
        **{
            # A text always; there may be tens of thousands of Events, and a list reads the field of each.
            f"involvedObject.{name}": attrgetter(f"involvedObject.{name}")
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": _field_reader("reason"),
        "reportingComponent": _field_reader("reportingComponent"),
        "source": lambda event: event.source.component or event.reportingComponent,
        "type": _field_reader("type"),
    },
    # Read from core/v1 Events, as which they are stored.
    "events.events.k8s.io": {
        **{
            f"regarding.{name}": _field_reader(f"involvedObject.{name}")
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": _field_reader("reason"),
        "reportingController": _field_reader("reportingComponent"),
        "type": _field_reader("type"),
    },
    "jobs.batch": {"status.successful": _field_reader("status.succeeded")},
    "namespaces": {"status.phase": _field_reader("status.phase")},
    "nodes": {"spec.unschedulable": _field_reader("spec.unschedulable")},
    "resourceslices.resource.k8s.io": {
        "spec.driver": _field_reader("spec.driver"),
        "spec.nodeName": _field_reader("spec.nodeName"),
    },
    "pods": {
        **{
            path: _field_reader(path)
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
        # Upstream accepts it, and has no value for it.
        "status.podIPs": lambda pod: "",
    },
    "replicationcontrollers": {"status.replicas": _field_reader("status.replicas")},
    "secrets": {"type": _field_reader("type")},
    "services": {"spec.clusterIP": _field_reader("spec.clusterIP"), "spec.type": _field_reader("spec.type")},
}

# -- kinds with a strategy of their own -------------------------------------------------------

EVENT_TTL = 3600.0
"""In seconds; kube-apiserver's ``--event-ttl``."""


def _prepare_apiservice_for_create(obj: APIService, context: WriteContext) -> APIService:
    """Marks the APIServices of this server as available."""
    if obj.spec.service is not None:
        return replace(obj, status=APIServiceStatus())
    available = APIServiceCondition(
        type="Available",
        status="True",
        reason="Local",
        message="Local APIServices are always available",
        lastTransitionTime=context.now,
    )
    return replace(obj, status=APIServiceStatus(conditions=(available,)))


_KIND_STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "apiservices.apiregistration.k8s.io": {"prepare_for_create": _prepare_apiservice_for_create},
    "certificatesigningrequests.certificates.k8s.io": {
        "prepare_for_create": certificatesigningrequest.prepare_for_create,
        "prepare_for_update": certificatesigningrequest.prepare_for_update,
        "prepare_for_status_update": certificatesigningrequest.prepare_for_status_update,
        "subresource_updates": {"approval": certificatesigningrequest.prepare_for_approval},
    },
    "daemonsets.apps": {
        "prepare_for_create": workloads.prepare_daemonset_for_create,
        "prepare_for_update": workloads.prepare_daemonset_for_update,
    },
    "events": {"ttl": EVENT_TTL},
    "events.events.k8s.io": {"ttl": EVENT_TTL},
    "jobs.batch": {"prepare_for_create": workloads.prepare_job_for_create},
    "namespaces": {
        "prepare_for_create": core.prepare_namespace_for_create,
        "prepare_for_update": core.prepare_namespace_for_update,
        "subresource_updates": {"finalize": core.prepare_namespace_for_finalize},
        "can_finish_deletion": core.namespace_can_finish_deletion,
    },
    # Kubelets register nodes together with their status.
    "nodes": {"prepare_for_create": prepare_nothing},
    "persistentvolumes": {
        "prepare_for_create": core.prepare_volume_for_create,
        "prepare_for_status_update": core.prepare_volume_for_status_update,
    },
    "persistentvolumeclaims": {
        "prepare_for_create": core.prepare_claim_for_create,
        "prepare_for_update": core.prepare_claim_for_update,
    },
    "csidrivers.storage.k8s.io": {
        "prepare_for_create": core.prepare_driver_for_create,
        "prepare_for_update": core.prepare_driver_for_update,
    },
    "pods": {
        "prepare_for_create": pod.prepare_for_create,
        "prepare_for_status_update": pod.prepare_for_status_update,
        "status_default": default_pod_status,
        "subresource_updates": {
            "ephemeralcontainers": pod.prepare_for_ephemeral_containers,
            "resize": pod.prepare_for_resize,
        },
        "check_graceful_delete": pod.grace_period,
    },
    "services": {
        "prepare_for_create": core.prepare_service_for_create,
        "prepare_for_update": core.prepare_service_for_update,
        "status_default": default_service_status,
    },
    "devicetaintrules.resource.k8s.io": {
        "prepare_for_create": devices.prepare_rule_for_create,
        "prepare_for_update": devices.prepare_rule_for_update,
    },
    "resourceclaims.resource.k8s.io": {
        "prepare_for_status_update": devices.prepare_claim_for_status_update,
    },
    "resourceslices.resource.k8s.io": {
        "prepare_for_create": devices.prepare_slice_for_create,
        "prepare_for_update": devices.prepare_slice_for_update,
    },
}

_GATED_STRATEGIES: Mapping[str, Callable[[frozenset[str]], Mapping[str, Any]]] = {
    "podgroups.scheduling.k8s.io": podgroup.strategy
}
"""Strategies that depend on feature gates, besides that of the resource itself."""
