"""StatefulSets, as the controllers read them."""

from __future__ import annotations

from steersman.api.kinds import Object, Struct
from steersman.api.scheme import Kind, register


class StatefulSetSpec(Struct, frozen=True):
    replicas: int | None = None


class StatefulSet(Object, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


STATEFULSETS = register(Kind("apps", "v1", "StatefulSet", "statefulsets", True, StatefulSet))
