"""Validation of Pods and PodTemplates on create and update."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.server.status_errors import FieldError
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, format_diff, go_slice, go_struct
from steersman.server.validation.pods import containers, scheduling
from steersman.server.validation.pods.annotations import (
    validate_annotations_update,
    validate_pod_annotations,
    validate_profiles_match,
)
from steersman.server.validation.pods.spec import validate_pod_spec, validate_pod_template_spec

_spec_cache: BoundedCache[int, tuple[v1.PodSpec, tuple[FieldError, ...]]] = BoundedCache(256)
"""By the id of a spec: that spec, and its errors. Pods of one template share one spec."""

_MUTABLE_FIELDS = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_pod(errors: FieldErrors, pod: v1.Pod) -> None:
    meta.validate_object_meta(errors, pod.metadata)
    spec = pod.spec
    if pod.metadata.annotations:
        validate_pod_annotations(errors, "metadata.annotations", pod.metadata.annotations, spec)
    _validate_pod_spec(errors, pod)
    if spec.ephemeralContainers:
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.nodeName and spec.schedulingGates:
        errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    if pod.metadata.annotations:
        validate_profiles_match(errors, "spec", pod.metadata.annotations, spec)


def _validate_pod_spec(errors: FieldErrors, pod: v1.Pod) -> None:
    """Validates the spec of a pod, with the rules that do not hold for templates."""
    spec, metadata = pod.spec, pod.metadata
    known = _spec_cache.get(id(spec))
    if known is None:
        problems = FieldErrors()
        validate_pod_spec(problems, "spec", spec, metadata)
        _validate_pod_only(problems, spec)
        known = (spec, tuple(problems))
        # Rules that depend on the pod's name give another result for the next pod of the template.
        if not spec.resourceClaims and all(volume.ephemeral is None for volume in spec.volumes):
            _spec_cache.put(id(spec), known)
    if known[1]:
        errors.extend(known[1])


def _validate_pod_only(errors: FieldErrors, spec: v1.PodSpec) -> None:
    if not spec.serviceAccountName:
        for i, volume in enumerate(spec.volumes):
            sources = volume.projected.sources if volume.projected is not None else None
            for j, source in enumerate(sources or ()):
                if source.serviceAccountToken is not None:
                    errors.forbidden(
                        f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken",
                        "must not be specified when serviceAccountName is not set",
                    )
    for i, container in enumerate(spec.containers):
        containers.validate_image_whitespace(errors, f"spec.containers[{i}]", container.image)
    for i, container in enumerate(spec.initContainers):
        containers.validate_image_whitespace(errors, f"spec.initContainers[{i}]", container.image)


# -- updates ----------------------------------------------------------------------------------


def validate_pod_update(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """Of a pod's spec only images, the deadline, tolerations and scheduling gates are mutable."""
    validate_pod_change(errors, new, old)
    if new.spec is old.spec:
        return
    if _validate_mutable_fields(errors, new.spec, old.spec):
        munged = _with_immutable_fields_of(errors, new.spec, old.spec)
        if munged != old.spec:
            changed = format_diff(old.spec, munged)
            errors.forbidden(
                "spec", f"pod updates may not change fields other than {_MUTABLE_FIELDS}\n{changed}"
            )


def validate_pod_change(errors: FieldErrors, new: v1.Pod, old: v1.Pod) -> None:
    """Validates the new pod by itself, without the parts that are unchanged."""
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    if new.metadata.annotations is not old.metadata.annotations:
        new_annotations = new.metadata.annotations
        validate_pod_annotations(errors, "metadata.annotations", new_annotations, new.spec)
        if new.spec is not old.spec:
            _validate_pod_spec(errors, new)
        validate_annotations_update(errors, new_annotations, old.metadata.annotations)
        validate_pod_annotations(errors, "metadata.annotations", new_annotations, new.spec)
    elif new.spec is not old.spec:
        _validate_pod_spec(errors, new)


def _validate_mutable_fields(errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec) -> bool:
    """Validates the changes of mutable fields; returns whether other fields have to be compared."""
    for name, now, was in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.initContainers, old.initContainers),
    ):
        if len(now) != len(was):
            errors.forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return False
        for i, container in enumerate(now):
            if not container.image:
                errors.required(f"spec.{name}[{i}].image")
            containers.validate_image_whitespace(errors, f"spec.{name}[{i}]", container.image)
    if not _validate_active_deadline_update(errors, new.activeDeadlineSeconds, old.activeDeadlineSeconds):
        return False
    _validate_tolerations_update(errors, new.tolerations, old.tolerations)
    known = [gate.name for gate in old.schedulingGates]
    for i, gate in enumerate(new.schedulingGates):
        if gate.name not in known:
            added = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
            errors.forbidden(f"spec.schedulingGates[{i}].name", added)
    return new != old


def _validate_active_deadline_update(errors: FieldErrors, new: int | None, old: int | None) -> bool:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= 2**31 - 1:
        errors.invalid(path, new, names.inclusive_range(0, 2**31 - 1))
        return False
    elif old is not None and old < new:
        errors.invalid(path, new, "must be less than or equal to previous value")
        return False
    return True


def _validate_tolerations_update(
    errors: FieldErrors, new: tuple[v1.Toleration, ...], old: tuple[v1.Toleration, ...]
) -> None:
    timeless = [replace(toleration, tolerationSeconds=None) for toleration in new]
    for toleration in old:
        if replace(toleration, tolerationSeconds=None) not in timeless:
            errors.forbidden(
                "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
            )
            return
    scheduling.validate_tolerations(errors, "spec.tolerations", new)


def _with_immutable_fields_of(errors: FieldErrors, new: v1.PodSpec, old: v1.PodSpec) -> v1.PodSpec:
    """The new spec with the old values of the mutable fields."""
    changes: dict[str, Any] = {
        name: tuple(
            replace(now, image=was.image)
            for now, was in zip(getattr(new, name), getattr(old, name), strict=True)
        )
        for name in ("containers", "initContainers")
    }
    changes["activeDeadlineSeconds"] = old.activeDeadlineSeconds
    changes["schedulingGates"] = old.schedulingGates
    changes["tolerations"] = old.tolerations
    grace = old.terminationGracePeriodSeconds
    if grace is not None and grace < 0 and new.terminationGracePeriodSeconds == 1:
        changes["terminationGracePeriodSeconds"] = grace
    if old.schedulingGates:
        _validate_gated_update(errors, changes, new, old)
    return replace(new, **changes)


def _validate_gated_update(
    errors: FieldErrors, changes: dict[str, Any], new: v1.PodSpec, old: v1.PodSpec
) -> None:
    """While a pod has scheduling gates, its node selector and node affinity may become stricter."""
    if new.nodeSelector != old.nodeSelector:
        if any(new.nodeSelector.get(key) != value for key, value in old.nodeSelector.items()):
            errors.invalid(
                "spec.nodeSelector",
                new.nodeSelector,
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            )
        changes["nodeSelector"] = old.nodeSelector
    now = None if new.affinity is None else new.affinity.nodeAffinity
    was = None if old.affinity is None else old.affinity.nodeAffinity
    if now == was:
        return
    _validate_node_affinity_update(errors, now, was)
    base = new.affinity or v1.Affinity()
    affinity = replace(base, nodeAffinity=was)
    changes["affinity"] = None if affinity == v1.Affinity() and old.affinity is None else affinity


def _validate_node_affinity_update(
    errors: FieldErrors, new: v1.NodeAffinity | None, old: v1.NodeAffinity | None
) -> None:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    required = None if old is None else old.requiredDuringSchedulingIgnoredDuringExecution
    if required is None:
        return
    was = required.nodeSelectorTerms or ()
    wanted = None if new is None else new.requiredDuringSchedulingIgnoredDuringExecution
    now = (wanted.nodeSelectorTerms or ()) if wanted is not None else ()
    if was and len(was) != len(now):
        shown = go_slice(map(_format_node_selector_term, now)) if now else None
        none = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.invalid(path, shown, none)
        return
    for i, (term, before) in enumerate(zip(now, was, strict=False)):
        if not _is_addition(term, before):
            only = "only additions are allowed (no mutations or deletions)"
            errors.invalid(f"{path}[{i}]", _format_node_selector_term(term), only)


def _is_addition(new: v1.NodeSelectorTerm, old: v1.NodeSelectorTerm) -> bool:
    if not old.matchExpressions and not old.matchFields:
        return not new.matchExpressions and not new.matchFields
    return (
        new.matchExpressions[: len(old.matchExpressions)] == old.matchExpressions
        and new.matchFields[: len(old.matchFields)] == old.matchFields
    )


def _format_node_selector_term(term: v1.NodeSelectorTerm) -> object:
    return go_struct(
        **{
            name: go_slice(
                go_struct(Key=r.key, Operator=r.operator, Values=r.values or None) for r in requirements
            )
            if requirements
            else None
            for name, requirements in (
                ("MatchExpressions", term.matchExpressions),
                ("MatchFields", term.matchFields),
            )
        }
    )


# -- PodTemplates -----------------------------------------------------------------------------


def validate_pod_template(errors: FieldErrors, obj: v1.PodTemplate) -> None:
    """Validates a PodTemplate."""
    meta.validate_object_meta(errors, obj.metadata)
    validate_pod_template_spec(errors, "template", obj.template)


def validate_pod_template_update(errors: FieldErrors, new: v1.PodTemplate, old: v1.PodTemplate) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    validate_pod_template_spec(errors, "template", new.template)
