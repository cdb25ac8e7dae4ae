"""Rollback on request: the annotation that stands for ``spec.rollbackTo`` of extensions/v1beta1.

``kubectl rollout undo`` does not use it; it writes the old template itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import replace

from steersman.api import pod_templates
from steersman.api.kinds import Deployment, PodTemplateSpec, ReplicaSet
from steersman.controllers.deployment.replicasets import ReplicaSets
from steersman.controllers.deployment.revision import (
    NOT_COPIED,
    ROLLBACK_TO,
    copied_annotations,
    last_revision,
    parse_revision,
    revision_of,
)
from steersman.intent.actions import Emit, ReadModifyWrite
from steersman.intent.verdict import Rest, Verdict

REVISION_NOT_FOUND = "DeploymentRollbackRevisionNotFound"
TEMPLATE_UNCHANGED = "DeploymentRollbackTemplateUnchanged"
ROLLED_BACK = "DeploymentRollback"


def requested_revision(deployment: Deployment) -> int | None:
    """The revision that a rollback was requested to, 0 for the previous one; None without a request."""
    return parse_revision(deployment.metadata.annotations.get(ROLLBACK_TO, ""))


class RollbackEdit(msgspec.Struct, frozen=True):
    """Edits a Deployment: removes the request, and restores an old template where there is one."""

    request: str
    """The value of the annotation that is answered."""
    template: PodTemplateSpec | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Replace the Deployment's own annotations, together with the template."""

    def __call__(self, document: dict[str, Any]) -> None:
        annotations: dict[str, str] = document["metadata"].get("annotations") or {}
        if annotations.get(ROLLBACK_TO) != self.request:
            return  # another request since; the next round sees it
        if self.template is not None:
            document["spec"]["template"] = msgspec.json.decode(msgspec.json.encode(self.template))
            kept = {name: value for name, value in annotations.items() if name in NOT_COPIED}
            annotations = {**kept, **self.annotations}
        annotations.pop(ROLLBACK_TO, None)
        document["metadata"]["annotations"] = annotations


def rollback_edit(deployment: Deployment, to: ReplicaSet | None = None) -> RollbackEdit:
    """The edit that restores a ReplicaSet's template, or only removes the request."""
    request = deployment.metadata.annotations[ROLLBACK_TO]
    if to is None:
        return RollbackEdit(request)
    template = to.spec.template
    metadata = template.metadata
    labels = {key: value for key, value in metadata.labels.items() if key != pod_templates.POD_TEMPLATE_HASH}
    template = replace(template, metadata=replace(metadata, labels=labels))
    # The ReplicaSet's annotations, the change-cause for one, are those the Deployment had with that template.
    return RollbackEdit(request, template, copied_annotations(to.metadata.annotations))


async def roll_back(sets: ReplicaSets, revision: int) -> Verdict:
    """Rolls back to a revision, 0 for the previous one, and removes the request in any case."""
    deployment = sets.deployment
    name = deployment.metadata.name
    target = revision or last_revision(sets)
    if target == 0:
        return await _reject(deployment, REVISION_NOT_FOUND, "Unable to find last revision.")
    to = next((rs for rs in sets if revision_of(rs) == target), None)
    if to is None:
        return await _reject(deployment, REVISION_NOT_FOUND, "Unable to find the revision to rollback to.")
    if pod_templates.same(to.spec.template, deployment.spec.template):
        return await _reject(
            deployment,
            TEMPLATE_UNCHANGED,
            f'The rollback revision contains the same template as current deployment "{name}"',
        )
    await ReadModifyWrite(deployment, rollback_edit(deployment, to))
    await Emit(deployment, "Normal", ROLLED_BACK, f'Rolled back deployment "{name}" to revision {target}')
    return Rest(f"rolled back to revision {target}")


async def _reject(deployment: Deployment, reason: str, message: str) -> Verdict:
    await Emit(deployment, "Warning", reason, message)
    await ReadModifyWrite(deployment, rollback_edit(deployment))
    return Rest(f"rollback rejected: {message}")
