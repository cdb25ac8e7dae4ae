"""StatefulSets, and the history they and DaemonSets keep."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import apps_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.validation import claims, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import Found, fields, selector
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


def create(found: Found, obj: apps_v1.StatefulSet) -> None:
    meta.check(found, obj.metadata, names.label)
    _stateful_set(found, obj.spec, None)


def update(found: Found, new: apps_v1.StatefulSet, old: apps_v1.StatefulSet) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _stateful_set(found, new.spec, old.spec)
    if replace(new.spec, **{name: getattr(old.spec, name) for name in _STATEFUL_MUTABLE}) != old.spec:
        found.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden",
        )


def _stateful_set(found: Found, spec: apps_v1.StatefulSetSpec, old: apps_v1.StatefulSetSpec | None) -> None:
    policies = ("OrderedReady", "Parallel")
    if not spec.podManagementPolicy:
        found.required("spec.podManagementPolicy")
    elif spec.podManagementPolicy not in policies:
        either = "must be 'OrderedReady' or 'Parallel'"
        found.invalid("spec.podManagementPolicy", spec.podManagementPolicy, either)
    _stateful_strategy(found, "spec.updateStrategy", spec.updateStrategy)
    kept = spec.persistentVolumeClaimRetentionPolicy
    if kept is not None:
        for name in ("whenDeleted", "whenScaled"):
            value = getattr(kept, name)
            if value not in _RETENTION:
                at = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
                found.unsupported(at, value, _RETENTION)
    if old is None:
        for i, claim in enumerate(spec.volumeClaimTemplates):
            claims.spec(found, f"spec.volumeClaimTemplates[{i}].spec", claim.spec)
    found.negative("spec.replicas", spec.replicas)
    found.negative("spec.minReadySeconds", spec.minReadySeconds)
    if spec.ordinals is not None:
        found.negative("spec.ordinals.start", spec.ordinals.start)
    if old is None and spec.serviceName:
        found.each("spec.serviceName", spec.serviceName, names.label(spec.serviceName))
    selects(found, spec.selector, "statefulset")
    if selected(found, spec.selector, spec.template):
        _stateful_template(found, spec, old)
    else:
        found.invalid("spec.selector", selector(spec.selector), "")
    lasting(found, spec.template, "StatefulSet")


def _stateful_template(
    found: Found, spec: apps_v1.StatefulSetSpec, old: apps_v1.StatefulSetSpec | None
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
    check_template(found, "spec.template", template)
    # The real server looks at the template's metadata twice.
    meta.labels(found, "spec.template.labels", template.metadata.labels)
    meta.notes(found, "spec.template.annotations", template.metadata.annotations)


def _stateful_strategy(found: Found, path: str, strategy: apps_v1.StatefulSetUpdateStrategy) -> None:
    rolling = strategy.rollingUpdate
    if not strategy.type:
        found.required(path)
    elif strategy.type == "OnDelete":
        if rolling is not None:
            found.invalid(
                f"{path}.rollingUpdate",
                fields(Partition=rolling.partition or 0, MaxUnavailable=rolling.maxUnavailable),
                "only allowed for updateStrategy 'RollingUpdate'",
            )
    elif strategy.type == "RollingUpdate":
        if rolling is not None:
            found.negative(f"{path}.rollingUpdate.partition", rolling.partition)
    else:
        shown = None
        if rolling is not None:
            shown = fields(Partition=rolling.partition or 0, MaxUnavailable=rolling.maxUnavailable)
        either = "must be 'RollingUpdate' or 'OnDelete'"
        found.invalid(path, fields(Type=strategy.type, RollingUpdate=shown), either)


# -- history ----------------------------------------------------------------------------------


def revision(found: Found, obj: apps_v1.ControllerRevision) -> None:
    meta.check(found, obj.metadata)
    found.negative("revision", obj.revision)
    if obj.data is None:
        found.required("data", "data is mandatory")
    elif not isinstance(obj.data, Mapping):
        found.required("data", "data must be a valid JSON object")


def revision_update(found: Found, new: apps_v1.ControllerRevision, old: apps_v1.ControllerRevision) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    meta.again(found, new.metadata, old.metadata, names.subdomain)
    found.negative("revision", new.revision)
    found.changed("data", new.data, old.data)
