"""Rolling back on request: the annotation that stands for the old API's ``spec.rollbackTo``.

``kubectl rollout undo`` does not need it; it writes the old template itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import replace

from steersman.api import pod_templates
from steersman.api.kinds import Deployment, PodTemplateSpec, ReplicaSet
from steersman.controllers.deployment.replicasets import Family
from steersman.controllers.deployment.revision import OWN, ROLLBACK, last, number, revision_of, shared
from steersman.intent.actions import Emit, ReadModifyWrite
from steersman.intent.verdict import Rest, Verdict

NOT_FOUND = "DeploymentRollbackRevisionNotFound"
UNCHANGED = "DeploymentRollbackTemplateUnchanged"
DONE = "DeploymentRollback"


def asked(deployment: Deployment) -> int | None:
    """The revision to go back to, 0 for the one before this; None: no such wish."""
    return number(deployment.metadata.annotations.get(ROLLBACK, ""))


class Answer(msgspec.Struct, frozen=True):
    """The edit that answers a request: the wish goes, and the old template comes if there is one."""

    wish: str
    template: PodTemplateSpec | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What the Deployment's own annotations are replaced by, together with the template."""

    def __call__(self, document: dict[str, Any]) -> None:
        annotations: dict[str, str] = document["metadata"].get("annotations") or {}
        if annotations.get(ROLLBACK) != self.wish:
            return  # somebody changed their mind; the next round sees it
        if self.template is not None:
            document["spec"]["template"] = msgspec.json.decode(msgspec.json.encode(self.template))
            kept = {name: value for name, value in annotations.items() if name in OWN}
            annotations = {**kept, **self.annotations}
        annotations.pop(ROLLBACK, None)
        document["metadata"]["annotations"] = annotations


def answer(deployment: Deployment, to: ReplicaSet | None = None) -> Answer:
    """How to answer: by going back to a ReplicaSet's template, or by doing nothing."""
    wish = deployment.metadata.annotations[ROLLBACK]
    if to is None:
        return Answer(wish)
    template = to.spec.template
    metadata = template.metadata
    labels = {key: value for key, value in metadata.labels.items() if key != pod_templates.POD_TEMPLATE_HASH}
    template = replace(template, metadata=replace(metadata, labels=labels))
    # The set's annotations come along, the change-cause for one: they are what the Deployment
    # said when that template was its own.
    return Answer(wish, template, shared(to.metadata.annotations))


async def roll_back(family: Family, revision: int) -> Verdict:
    """Answer the request, in any case so that it is gone afterwards."""
    deployment = family.deployment
    name = deployment.metadata.name
    wanted = revision or last(family)
    if wanted == 0:
        return await _give_up(deployment, NOT_FOUND, "Unable to find last revision.")
    target = next((rs for rs in family if revision_of(rs) == wanted), None)
    if target is None:
        return await _give_up(deployment, NOT_FOUND, "Unable to find the revision to rollback to.")
    if pod_templates.same(target.spec.template, deployment.spec.template):
        return await _give_up(
            deployment,
            UNCHANGED,
            f'The rollback revision contains the same template as current deployment "{name}"',
        )
    await ReadModifyWrite(deployment, answer(deployment, target))
    await Emit(deployment, "Normal", DONE, f'Rolled back deployment "{name}" to revision {wanted}')
    return Rest(f"went back to revision {wanted}; its rollout follows")


async def _give_up(deployment: Deployment, reason: str, message: str) -> Verdict:
    await Emit(deployment, "Warning", reason, message)
    await ReadModifyWrite(deployment, answer(deployment))
    return Rest(f"no rollback: {message}")
