"""New pods: what plugins decide about a template is remembered as long as nothing it depends on changes.

ReplicaSets make thousands of pods of one frozen spec, and pods of one spec fare alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.core_v1 import PodSpec
from steersman.server.admission.plugin import Draft, Lookups, PodPlugin, Refused, refusal
from steersman.server.admission.service_account import mirror_fault
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import Attributes

MIRROR = "kubernetes.io/config.mirror"
"""Marks the shadow of a pod some kubelet runs on its own account. It must stay as the kubelet made it."""

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
"""Begins the only annotations that decisions depend on."""


@dataclass(slots=True)
class Templates:
    """What became of recent specs, by namespace and identity of the spec."""

    plugins: tuple[PodPlugin, ...]
    look: Lookups
    made: BoundedCache[tuple[str, int], tuple[PodSpec, Draft]] = field(
        default_factory=lambda: BoundedCache(1024)
    )
    judged: BoundedCache[tuple[str, int], tuple[PodSpec, str]] = field(
        default_factory=lambda: BoundedCache(1024)
    )

    def forget(self, namespace: str) -> None:
        """Something decisions depend on has changed, in one namespace or (``""``) in all."""
        if not namespace:
            self.made.clear()
            self.judged.clear()
            return
        for known in (self.made, self.judged):
            for key, _ in known.items():
                if key[0] == namespace:
                    known.discard(key)

    def mutate(self, request: Attributes) -> Any:
        """A new pod as it shall be."""
        pod = request.obj
        annotations = pod.metadata.annotations
        if annotations and MIRROR in annotations:
            why = mirror_fault(pod)
            if why:
                raise refusal(request, why)
            return self._fill_mirror(request, pod)
        spec = pod.spec
        key = (request.namespace, id(spec))
        known = self.made.get(key)
        if known is None:
            known = (spec, self._fill(request, Draft(spec, {})))
            self.made.put(key, known)
        draft = known[1]
        if draft.notes:
            meta = replace(pod.metadata, annotations={**annotations, **draft.notes})
            return replace(pod, metadata=meta, spec=draft.spec)
        return replace(pod, spec=draft.spec)

    def _fill_mirror(self, request: Attributes, pod: Any) -> Any:
        """All but the service account, which mirror pods must not have."""
        draft = self._fill(request, Draft(pod.spec, {}), but="ServiceAccount")
        meta = replace(pod.metadata, annotations={**pod.metadata.annotations, **draft.notes})
        return put(pod, spec=draft.spec, metadata=meta)

    def _fill(self, request: Attributes, draft: Draft, but: str = "") -> Draft:
        try:
            for plugin in self.plugins:
                if plugin.name != but:
                    draft = plugin.fill(draft, request.namespace, self.look)
        except Refused as refused:
            raise refusal(request, str(refused)) from None
        return draft

    def validate(self, request: Attributes) -> None:
        """Refuse a new pod that some plugin minds."""
        pod = request.obj
        annotations = pod.metadata.annotations
        if annotations and any(name.startswith(APPARMOR) for name in annotations):
            why = self._fault(pod, request.namespace)
        else:
            key = (request.namespace, id(pod.spec))
            known = self.judged.get(key)
            if known is None:
                known = (pod.spec, self._fault(pod, request.namespace))
                self.judged.put(key, known)
            why = known[1]
        if why:
            raise refusal(request, why)

    def _fault(self, pod: Any, namespace: str) -> str:
        for plugin in self.plugins:
            why = plugin.fault(pod.spec, pod.metadata.annotations, namespace, self.look)
            if why:
                return why
        return ""
