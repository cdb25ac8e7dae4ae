"""Validation of StatefulSets and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import apps_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.validation import claims, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.apps import (
    validate_collision_count,
    validate_restarting_template,
    validate_selector_matches,
    validate_workload_selector,
)
from steersman.server.validation.field_errors import FieldErrors, format_selector, go_struct
from steersman.server.validation.pods.spec import validate_pod_template_spec
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_RETENTION_POLICIES = ("Retain", "Delete")
_MUTABLE_FIELDS = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def validate_stateful_set(errors: FieldErrors, obj: apps_v1.StatefulSet) -> None:
    meta.validate_object_meta(errors, obj.metadata, names.dns1123_label)
    _validate_stateful_set_spec(errors, obj.spec, None)


def validate_stateful_set_update(
    errors: FieldErrors, new: apps_v1.StatefulSet, old: apps_v1.StatefulSet
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _validate_stateful_set_spec(errors, new.spec, old.spec)
    if replace(new.spec, **{name: getattr(old.spec, name) for name in _MUTABLE_FIELDS}) != old.spec:
        errors.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden",
        )


def _validate_stateful_set_spec(
    errors: FieldErrors, spec: apps_v1.StatefulSetSpec, old: apps_v1.StatefulSetSpec | None
) -> None:
    policies = ("OrderedReady", "Parallel")
    if not spec.podManagementPolicy:
        errors.required("spec.podManagementPolicy")
    elif spec.podManagementPolicy not in policies:
        either = "must be 'OrderedReady' or 'Parallel'"
        errors.invalid("spec.podManagementPolicy", spec.podManagementPolicy, either)
    _validate_stateful_set_strategy(errors, "spec.updateStrategy", spec.updateStrategy)
    retention = spec.persistentVolumeClaimRetentionPolicy
    if retention is not None:
        for name, value in (("whenDeleted", retention.whenDeleted), ("whenScaled", retention.whenScaled)):
            if value not in _RETENTION_POLICIES:
                at = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
                errors.not_supported(at, value, _RETENTION_POLICIES)
    if old is None:
        for i, claim in enumerate(spec.volumeClaimTemplates):
            claims.validate_claim_spec(errors, f"spec.volumeClaimTemplates[{i}].spec", claim.spec)
    errors.nonnegative("spec.replicas", spec.replicas)
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    if spec.ordinals is not None:
        errors.nonnegative("spec.ordinals.start", spec.ordinals.start)
    if old is None and spec.serviceName:
        errors.invalid_each("spec.serviceName", spec.serviceName, names.dns1123_label(spec.serviceName))
    validate_workload_selector(errors, spec.selector, "statefulset")
    if validate_selector_matches(errors, spec.selector, spec.template):
        _validate_stateful_set_template(errors, spec, old)
    else:
        errors.invalid("spec.selector", format_selector(spec.selector), "")
    validate_restarting_template(errors, spec.template, "StatefulSet")


def _validate_stateful_set_template(
    errors: FieldErrors, spec: apps_v1.StatefulSetSpec, old: apps_v1.StatefulSetSpec | None
) -> None:
    """Validates the template as the replicas get it: with the claims, without hostname and subdomain."""
    template = spec.template
    if old is not None and template == old.template:
        return
    pod_spec = template.spec
    # Volumes for the claims of the replicas take the place of the claim templates.
    claim_templates = {claim.metadata.name: claim for claim in spec.volumeClaimTemplates}
    if claim_templates or pod_spec.subdomain or pod_spec.hostname:
        claim_volumes = tuple(
            v1.Volume(name=name, persistentVolumeClaim=v1.PersistentVolumeClaimVolumeSource(claimName=name))
            for name in claim_templates
        )
        other_volumes = tuple(volume for volume in pod_spec.volumes if volume.name not in claim_templates)
        pod_spec = replace(pod_spec, subdomain="", hostname="", volumes=(*claim_volumes, *other_volumes))
        template = replace(template, spec=pod_spec)
    validate_pod_template_spec(errors, "spec.template", template)
    # Upstream validates the template's metadata twice.
    meta.validate_labels(errors, "spec.template.labels", template.metadata.labels)
    meta.validate_annotations(errors, "spec.template.annotations", template.metadata.annotations)


def _validate_stateful_set_strategy(
    errors: FieldErrors, path: str, strategy: apps_v1.StatefulSetUpdateStrategy
) -> None:
    rolling = strategy.rollingUpdate
    if not strategy.type:
        errors.required(path)
    elif strategy.type == "OnDelete":
        if rolling is not None:
            errors.invalid(
                f"{path}.rollingUpdate",
                go_struct(Partition=rolling.partition or 0, MaxUnavailable=rolling.maxUnavailable),
                "only allowed for updateStrategy 'RollingUpdate'",
            )
    elif strategy.type == "RollingUpdate":
        if rolling is not None:
            errors.nonnegative(f"{path}.rollingUpdate.partition", rolling.partition)
    else:
        shown = None
        if rolling is not None:
            shown = go_struct(Partition=rolling.partition or 0, MaxUnavailable=rolling.maxUnavailable)
        either = "must be 'RollingUpdate' or 'OnDelete'"
        errors.invalid(path, go_struct(Type=strategy.type, RollingUpdate=shown), either)


def validate_stateful_set_status(
    errors: FieldErrors, new: apps_v1.StatefulSet, old: apps_v1.StatefulSet
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    status = new.status
    errors.nonnegative("status.replicas", status.replicas)
    errors.nonnegative("status.readyReplicas", status.readyReplicas)
    errors.nonnegative("status.currentReplicas", status.currentReplicas)
    errors.nonnegative("status.updatedReplicas", status.updatedReplicas)
    errors.nonnegative("status.availableReplicas", status.availableReplicas)
    errors.nonnegative("status.observedGeneration", status.observedGeneration)
    errors.nonnegative("status.collisionCount", status.collisionCount)
    for field, count in (
        ("readyReplicas", status.readyReplicas),
        ("currentReplicas", status.currentReplicas),
        ("updatedReplicas", status.updatedReplicas),
        ("availableReplicas", status.availableReplicas),
    ):
        if count > status.replicas:
            errors.invalid(f"status.{field}", count, "cannot be greater than status.replicas")
    if status.availableReplicas > status.readyReplicas:
        errors.invalid(
            "status.availableReplicas",
            status.availableReplicas,
            "cannot be greater than status.readyReplicas",
        )
    validate_collision_count(errors, status.collisionCount, old.status.collisionCount)


# -- ControllerRevisions ----------------------------------------------------------------------


def validate_controller_revision(errors: FieldErrors, obj: apps_v1.ControllerRevision) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    errors.nonnegative("revision", obj.revision)
    if obj.data is None:
        errors.required("data", "data is mandatory")
    elif not isinstance(obj.data, Mapping):
        errors.required("data", "data must be a valid JSON object")


def validate_controller_revision_update(
    errors: FieldErrors, new: apps_v1.ControllerRevision, old: apps_v1.ControllerRevision
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    errors.nonnegative("revision", new.revision)
    errors.immutable("data", new.data, old.data)


RULES: Mapping[GroupKind, AnyRules] = {
    ("apps", "ControllerRevision"): Rules[apps_v1.ControllerRevision](
        validate_controller_revision, validate_controller_revision_update
    ),
    ("apps", "StatefulSet"): Rules[apps_v1.StatefulSet](
        validate_stateful_set, validate_stateful_set_update, status=validate_stateful_set_status
    ),
}
