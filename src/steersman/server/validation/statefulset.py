"""StatefulSets, and the history they and DaemonSets keep."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import apps_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.validation import claims, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, format_selector, go_struct
from steersman.server.validation.pods.spec import template as check_template
from steersman.server.validation.templates import (
    lasting,
    selected,
    selects,
)

_RETENTION = ("Retain", "Delete")
_STATEFUL_MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def create(errors: FieldErrors, obj: apps_v1.StatefulSet) -> None:
    meta.check(errors, obj.metadata, names.label)
    _stateful_set(errors, obj.spec, None)


def update(errors: FieldErrors, new: apps_v1.StatefulSet, old: apps_v1.StatefulSet) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _stateful_set(errors, new.spec, old.spec)
    if replace(new.spec, **{name: getattr(old.spec, name) for name in _STATEFUL_MUTABLE}) != old.spec:
        errors.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden",
        )


def _stateful_set(
    errors: FieldErrors, spec: apps_v1.StatefulSetSpec, old: apps_v1.StatefulSetSpec | None
) -> None:
    policies = ("OrderedReady", "Parallel")
    if not spec.podManagementPolicy:
        errors.required("spec.podManagementPolicy")
    elif spec.podManagementPolicy not in policies:
        either = "must be 'OrderedReady' or 'Parallel'"
        errors.invalid("spec.podManagementPolicy", spec.podManagementPolicy, either)
    _stateful_strategy(errors, "spec.updateStrategy", spec.updateStrategy)
    kept = spec.persistentVolumeClaimRetentionPolicy
    if kept is not None:
        for name in ("whenDeleted", "whenScaled"):
            value = getattr(kept, name)
            if value not in _RETENTION:
                at = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
                errors.not_supported(at, value, _RETENTION)
    if old is None:
        for i, claim in enumerate(spec.volumeClaimTemplates):
            claims.spec(errors, f"spec.volumeClaimTemplates[{i}].spec", claim.spec)
    errors.nonnegative("spec.replicas", spec.replicas)
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    if spec.ordinals is not None:
        errors.nonnegative("spec.ordinals.start", spec.ordinals.start)
    if old is None and spec.serviceName:
        errors.invalid_each("spec.serviceName", spec.serviceName, names.label(spec.serviceName))
    selects(errors, spec.selector, "statefulset")
    if selected(errors, spec.selector, spec.template):
        _stateful_template(errors, spec, old)
    else:
        errors.invalid("spec.selector", format_selector(spec.selector), "")
    lasting(errors, spec.template, "StatefulSet")


def _stateful_template(
    errors: FieldErrors, spec: apps_v1.StatefulSetSpec, old: apps_v1.StatefulSetSpec | None
) -> None:
    """The template with what each replica is given of its own."""
    template = spec.template
    if old is not None and template == old.template:
        return
    given = template.spec
    # In the templates' stead stand the claims that will be made of them.
    made = {claim.metadata.name: claim for claim in spec.volumeClaimTemplates}
    if made or given.subdomain or given.hostname:
        added = tuple(
            v1.Volume(name=name, persistentVolumeClaim=v1.PersistentVolumeClaimVolumeSource(claimName=name))
            for name in made
        )
        kept = tuple(volume for volume in given.volumes if volume.name not in made)
        given = replace(given, subdomain="", hostname="", volumes=(*added, *kept))
        template = replace(template, spec=given)
    check_template(errors, "spec.template", template)
    # The real server looks at the template's metadata twice.
    meta.labels(errors, "spec.template.labels", template.metadata.labels)
    meta.notes(errors, "spec.template.annotations", template.metadata.annotations)


def _stateful_strategy(errors: FieldErrors, path: str, strategy: apps_v1.StatefulSetUpdateStrategy) -> None:
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


# -- history ----------------------------------------------------------------------------------


def revision(errors: FieldErrors, obj: apps_v1.ControllerRevision) -> None:
    meta.check(errors, obj.metadata)
    errors.nonnegative("revision", obj.revision)
    if obj.data is None:
        errors.required("data", "data is mandatory")
    elif not isinstance(obj.data, Mapping):
        errors.required("data", "data must be a valid JSON object")


def revision_update(
    errors: FieldErrors, new: apps_v1.ControllerRevision, old: apps_v1.ControllerRevision
) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    meta.again(errors, new.metadata, old.metadata, names.subdomain)
    errors.nonnegative("revision", new.revision)
    errors.immutable("data", new.data, old.data)
