"""PriorityClasses, RuntimeClasses, Leases and Events."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import coordination_v1, node_v1, scheduling_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import Found
from steersman.server.validation.pods.scheduling import tolerations
from steersman.server.validation.pods.spec import PREEMPTION

# -- PriorityClasses --------------------------------------------------------------------------

_HIGHEST = 1_000_000_000
_SYSTEM = {
    "system-node-critical": 2 * _HIGHEST + 1000,
    "system-cluster-critical": 2 * _HIGHEST,
}


def priority_class(found: Found, obj: scheduling_v1.PriorityClass) -> None:
    meta.check(found, obj.metadata, namespaced=False)
    name = obj.metadata.name
    if name.startswith("system-"):
        why = _system(obj, name)
        if why:
            says = "priority class names with 'system-' prefix are reserved for system use only. error: "
            found.forbidden("metadata.name", says + why)
    elif obj.value > _HIGHEST:
        most = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        found.forbidden("value", most)
    if obj.preemptionPolicy is not None:
        found.choose("preemptionPolicy", obj.preemptionPolicy, PREEMPTION)


def _system(obj: scheduling_v1.PriorityClass, name: str) -> str:
    value = _SYSTEM.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if obj.value != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.globalDefault else ""


def priority_class_update(
    found: Found, new: scheduling_v1.PriorityClass, old: scheduling_v1.PriorityClass
) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.value != old.value:
        found.forbidden("value", "may not be changed in an update.")
    found.changed("preemptionPolicy", new.preemptionPolicy, old.preemptionPolicy)


# -- RuntimeClasses ---------------------------------------------------------------------------


def runtime_class(found: Found, obj: node_v1.RuntimeClass) -> None:
    meta.check(found, obj.metadata, namespaced=False, kube=False)
    if not obj.handler:
        found.required("handler")
    else:
        found.each("handler", obj.handler, names.label(obj.handler))
    if obj.overhead is not None:
        resources.requirements(found, "overhead", obj.overhead.podFixed, {})
    scheduling = obj.scheduling
    if scheduling is None:
        return
    meta.labels(found, "scheduling.nodeSelector", scheduling.nodeSelector)
    path = "scheduling.tolerations"
    tolerations(found, path, scheduling.tolerations)
    seen: list[tuple[str, str, str, str]] = []
    for i, one in enumerate(scheduling.tolerations):
        key = (one.key, one.operator, one.value, one.effect)
        if key in seen:
            found.duplicate(f"{path}[{i}]", one)
        seen.append(key)


def runtime_class_update(found: Found, new: node_v1.RuntimeClass, old: node_v1.RuntimeClass) -> None:
    meta.check_update(found, new.metadata, old.metadata, kube=False)
    found.changed("handler", new.handler, old.handler)


# -- Leases -----------------------------------------------------------------------------------


def lease(found: Found, obj: coordination_v1.Lease) -> None:
    meta.check(found, obj.metadata, kube=False)
    _lease(found, obj.spec)


def lease_update(found: Found, new: coordination_v1.Lease, old: coordination_v1.Lease) -> None:
    meta.check_update(found, new.metadata, old.metadata, kube=False)
    _lease(found, new.spec)


def _lease(found: Found, spec: coordination_v1.LeaseSpec) -> None:
    seconds, changes = spec.leaseDurationSeconds, spec.leaseTransitions
    if seconds is not None and seconds <= 0:
        found.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if changes is not None and changes < 0:
        found.invalid("spec.leaseTransitions", changes, "must be greater than or equal to 0")


# -- Events -----------------------------------------------------------------------------------

_OTHER_NAMESPACE = "does not match event.namespace"


def event(found: Found, obj: v1.Event) -> None:
    """An event of the core group; the real server asks little of those."""
    _event(found, obj, obj.involvedObject.namespace, obj.reportingComponent, "reportingComponent")


def event_update(found: Found, new: v1.Event, old: v1.Event) -> None:
    event(found, new)


def _event(found: Found, obj: Any, regarding: str, controller: str, called: str) -> None:
    namespace = obj.metadata.namespace
    at = "involvedObject.namespace"
    if obj.eventTime is None:
        if regarding:
            if namespace != regarding:
                found.invalid(at, regarding, _OTHER_NAMESPACE)
        elif namespace not in ("", "default"):
            found.invalid(at, regarding, _OTHER_NAMESPACE)
    else:
        if not regarding and namespace not in ("default", "kube-system"):
            found.invalid(at, regarding, _OTHER_NAMESPACE)
        if not controller:
            found.required(called)
        found.each(called, controller, names.qualified(controller))
        for name, most in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
            value = getattr(obj, name)
            if not value:
                found.required(name)
            if len(value) > most:
                found.invalid(name, "", f"can have at most {most} characters")
        if len(getattr(obj, "note", "") or getattr(obj, "message", "")) > 1024:
            found.invalid("message", "", "can have at most 1024 characters")
    found.each("namespace", namespace, names.subdomain(namespace))


def new_event(found: Found, obj: Any) -> None:
    """An event of the group ``events.k8s.io``, which is held to all its rules."""
    _new_event(found, obj)
    meta.check(found, obj.metadata)
    _series(found, obj)
    if obj.eventTime is None:
        found.required("eventTime")
    if obj.type not in ("Normal", "Warning"):
        found.invalid("type", "", f"has invalid value: {obj.type}")
    for name, called in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ):
        if getattr(obj, name):
            found.invalid(called, "", "needs to be unset")
    source = obj.deprecatedSource
    if source is not None and (source.component or source.host):
        found.invalid("source", "", "needs to be unset")


def _new_event(found: Found, obj: Any) -> None:
    _event(found, obj, obj.regarding.namespace, obj.reportingController, "reportingController")


def _series(found: Found, obj: Any) -> None:
    if obj.series is not None:
        if obj.series.count < 2:
            found.invalid("series.count", "", "should be at least 2")
        if obj.series.lastObservedTime is None:
            found.required("series.lastObservedTime")


def new_event_update(found: Found, new: Any, old: Any) -> None:
    """Only the series of an event goes on."""
    _new_event(found, new)
    meta.check_update(found, new.metadata, old.metadata)
    if new.series != old.series:
        _series(found, new)
    for name, called in (
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        # The real server looks at it twice.
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ):
        found.changed(called, getattr(new, name), getattr(old, name))
