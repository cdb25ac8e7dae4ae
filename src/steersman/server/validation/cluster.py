"""Validation of PriorityClasses, RuntimeClasses, Leases and Events."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import coordination_v1, events_v1, node_v1, scheduling_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods.scheduling import validate_tolerations
from steersman.server.validation.pods.spec import PREEMPTION_POLICIES
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

# -- PriorityClasses --------------------------------------------------------------------------

_HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITY_CLASSES = {
    "system-node-critical": 2 * _HIGHEST_USER_PRIORITY + 1000,
    "system-cluster-critical": 2 * _HIGHEST_USER_PRIORITY,
}


def validate_priority_class(errors: FieldErrors, obj: scheduling_v1.PriorityClass) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    name = obj.metadata.name
    if name.startswith("system-"):
        detail = _system_class_error(obj, name)
        if detail:
            message = "priority class names with 'system-' prefix are reserved for system use only. error: "
            errors.forbidden("metadata.name", message + detail)
    elif obj.value > _HIGHEST_USER_PRIORITY:
        most = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        errors.forbidden("value", most)
    if obj.preemptionPolicy is not None:
        errors.enum("preemptionPolicy", obj.preemptionPolicy, PREEMPTION_POLICIES)


def _system_class_error(obj: scheduling_v1.PriorityClass, name: str) -> str:
    value = SYSTEM_PRIORITY_CLASSES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if obj.value != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.globalDefault else ""


def validate_priority_class_update(
    errors: FieldErrors, new: scheduling_v1.PriorityClass, old: scheduling_v1.PriorityClass
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.value != old.value:
        errors.forbidden("value", "may not be changed in an update.")
    errors.immutable("preemptionPolicy", new.preemptionPolicy, old.preemptionPolicy)


# -- RuntimeClasses ---------------------------------------------------------------------------


def validate_runtime_class(errors: FieldErrors, obj: node_v1.RuntimeClass) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False, kube=False)
    if not obj.handler:
        errors.required("handler")
    else:
        errors.invalid_each("handler", obj.handler, names.dns1123_label(obj.handler))
    if obj.overhead is not None:
        resources.validate_resource_requirements(errors, "overhead", obj.overhead.podFixed, {})
    scheduling = obj.scheduling
    if scheduling is None:
        return
    meta.validate_labels(errors, "scheduling.nodeSelector", scheduling.nodeSelector)
    path = "scheduling.tolerations"
    validate_tolerations(errors, path, scheduling.tolerations)
    seen: list[tuple[str, str, str, str]] = []
    for i, toleration in enumerate(scheduling.tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            errors.duplicate(f"{path}[{i}]", toleration)
        seen.append(key)


def validate_runtime_class_update(
    errors: FieldErrors, new: node_v1.RuntimeClass, old: node_v1.RuntimeClass
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata, kube=False)
    errors.immutable("handler", new.handler, old.handler)


# -- Leases -----------------------------------------------------------------------------------


def validate_lease(errors: FieldErrors, obj: coordination_v1.Lease) -> None:
    meta.validate_object_meta(errors, obj.metadata, kube=False)
    _validate_lease_spec(errors, obj.spec)


def validate_lease_update(
    errors: FieldErrors, new: coordination_v1.Lease, old: coordination_v1.Lease
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata, kube=False)
    _validate_lease_spec(errors, new.spec)


def _validate_lease_spec(errors: FieldErrors, spec: coordination_v1.LeaseSpec) -> None:
    seconds, changes = spec.leaseDurationSeconds, spec.leaseTransitions
    if seconds is not None and seconds <= 0:
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if changes is not None and changes < 0:
        errors.invalid("spec.leaseTransitions", changes, "must be greater than or equal to 0")


# -- Events -----------------------------------------------------------------------------------

_NAMESPACE_MISMATCH = "does not match event.namespace"
_MAX_FIELD = 128
_MAX_MESSAGE = 1024


def validate_core_event(errors: FieldErrors, obj: v1.Event) -> None:
    """An Event of the core group, for which upstream keeps the legacy rules only."""
    _validate_legacy_event(
        errors,
        obj,
        namespace=obj.involvedObject.namespace,
        controller=obj.reportingComponent,
        controller_field="reportingComponent",
        message=obj.message,
    )


def validate_core_event_update(errors: FieldErrors, new: v1.Event, old: v1.Event) -> None:
    validate_core_event(errors, new)


def validate_event(errors: FieldErrors, obj: events_v1.Event) -> None:
    """An Event of the group ``events.k8s.io``, which has to follow every rule."""
    _validate_legacy_fields(errors, obj)
    meta.validate_object_meta(errors, obj.metadata)
    _validate_event_series(errors, obj.series)
    if obj.eventTime is None:
        errors.required("eventTime")
    if obj.type not in ("Normal", "Warning"):
        errors.invalid("type", "", f"has invalid value: {obj.type}")
    for field, value in (
        ("firstTimestamp", obj.deprecatedFirstTimestamp),
        ("lastTimestamp", obj.deprecatedLastTimestamp),
        ("count", obj.deprecatedCount),
    ):
        if value:
            errors.invalid(field, "", "needs to be unset")
    source = obj.deprecatedSource
    if source is not None and (source.component or source.host):
        errors.invalid("source", "", "needs to be unset")


def validate_event_update(errors: FieldErrors, new: events_v1.Event, old: events_v1.Event) -> None:
    """Only the series of an Event may change."""
    _validate_legacy_fields(errors, new)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.series != old.series:
        _validate_event_series(errors, new.series)
    errors.immutable("involvedObject", new.regarding, old.regarding)
    errors.immutable("reason", new.reason, old.reason)
    errors.immutable("message", new.note, old.note)
    errors.immutable("source", new.deprecatedSource, old.deprecatedSource)
    errors.immutable("firstTimestamp", new.deprecatedFirstTimestamp, old.deprecatedFirstTimestamp)
    errors.immutable("lastTimestamp", new.deprecatedLastTimestamp, old.deprecatedLastTimestamp)
    errors.immutable("count", new.deprecatedCount, old.deprecatedCount)
    # Upstream compares the reason twice.
    errors.immutable("reason", new.reason, old.reason)
    errors.immutable("type", new.type, old.type)
    errors.immutable("eventTime", new.eventTime, old.eventTime)
    errors.immutable("action", new.action, old.action)
    errors.immutable("related", new.related, old.related)
    errors.immutable("reportingController", new.reportingController, old.reportingController)
    errors.immutable("reportingInstance", new.reportingInstance, old.reportingInstance)


def _validate_legacy_fields(errors: FieldErrors, obj: events_v1.Event) -> None:
    _validate_legacy_event(
        errors,
        obj,
        namespace=obj.regarding.namespace,
        controller=obj.reportingController,
        controller_field="reportingController",
        message=obj.note,
    )


def _validate_legacy_event(
    errors: FieldErrors,
    obj: v1.Event | events_v1.Event,
    *,
    namespace: str,
    controller: str,
    controller_field: str,
    message: str,
) -> None:
    """The rules both groups share; ``namespace`` is that of the object the Event regards."""
    event_namespace = obj.metadata.namespace
    path = "involvedObject.namespace"
    if obj.eventTime is None:
        if namespace:
            if event_namespace != namespace:
                errors.invalid(path, namespace, _NAMESPACE_MISMATCH)
        elif event_namespace not in ("", "default"):
            errors.invalid(path, namespace, _NAMESPACE_MISMATCH)
    else:
        if not namespace and event_namespace not in ("default", "kube-system"):
            errors.invalid(path, namespace, _NAMESPACE_MISMATCH)
        if not controller:
            errors.required(controller_field)
        errors.invalid_each(controller_field, controller, names.qualified_name(controller))
        for field, value in (
            ("reportingInstance", obj.reportingInstance),
            ("action", obj.action),
            ("reason", obj.reason),
        ):
            if not value:
                errors.required(field)
            if len(value) > _MAX_FIELD:
                errors.invalid(field, "", f"can have at most {_MAX_FIELD} characters")
        if len(message) > _MAX_MESSAGE:
            errors.invalid("message", "", f"can have at most {_MAX_MESSAGE} characters")
    errors.invalid_each("namespace", event_namespace, names.dns1123_subdomain(event_namespace))


def _validate_event_series(errors: FieldErrors, series: events_v1.EventSeries | None) -> None:
    if series is not None:
        if series.count < 2:
            errors.invalid("series.count", "", "should be at least 2")
        if series.lastObservedTime is None:
            errors.required("series.lastObservedTime")


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "Event"): Rules[v1.Event](validate_core_event, validate_core_event_update, generic_metadata=True),
    ("coordination.k8s.io", "Lease"): Rules[coordination_v1.Lease](validate_lease, validate_lease_update),
    ("events.k8s.io", "Event"): Rules[events_v1.Event](validate_event, validate_event_update),
    ("node.k8s.io", "RuntimeClass"): Rules[node_v1.RuntimeClass](
        validate_runtime_class, validate_runtime_class_update
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules[scheduling_v1.PriorityClass](
        validate_priority_class, validate_priority_class_update
    ),
}
