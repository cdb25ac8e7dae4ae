"""The Pod Security Standards: what a pod must not do at the levels baseline and restricted.

differs: of old versions of the standards only what changed since 1.19 is known; older ones are judged like 1.19.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated.core_v1 import PodSpec
from steersman.server.admission.pod_security.baseline import BASELINE
from steersman.server.admission.pod_security.restricted import RESTRICTED
from steersman.server.admission.pod_security.violations import Subject

LATEST = 36


def faults(level: str, minor: int, spec: PodSpec, annotations: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a pod does that a level does not allow: reasons, each with a detail."""
    if level == "privileged":
        return []
    pod = Subject(spec, annotations, minor)
    checks = BASELINE if level == "baseline" else RESTRICTED
    return [fault for fault in (check(pod) for check in checks) if fault is not None]
