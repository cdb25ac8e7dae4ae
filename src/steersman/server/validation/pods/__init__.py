"""Validation of Pods and PodTemplates: `RULES` of the two kinds, and a module for each part of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.server.validation.pods.pod import (
    validate_pod,
    validate_pod_template,
    validate_pod_template_update,
    validate_pod_update,
)
from steersman.server.validation.pods.subresources import (
    validate_ephemeral_containers_update,
    validate_pod_status,
    validate_resize,
)
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

RULES: Mapping[GroupKind, AnyRules] = {
    ("", "Pod"): Rules[v1.Pod](
        validate_pod,
        validate_pod_update,
        status=validate_pod_status,
        subresources={"ephemeralcontainers": validate_ephemeral_containers_update, "resize": validate_resize},
    ),
    ("", "PodTemplate"): Rules[v1.PodTemplate](validate_pod_template, validate_pod_template_update),
}
