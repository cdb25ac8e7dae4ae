"""PodTemplateMemo caches what plugins decide on the spec of new pods, until an object they read changes.

A ReplicaSet creates thousands of pods with one frozen spec, and all of them are admitted alike.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated.core_v1 import PodSpec
from steersman.server.admission.plugin import AdmissionDenied, Listers, PodDraft, PodPlugin, forbidden_error
from steersman.server.admission.service_account import mirror_pod_error
from steersman.server.defaulting.missing_fields import put
from steersman.server.server import AdmissionAttributes

MIRROR = "kubernetes.io/config.mirror"
"""The annotation of mirror pods, which show a kubelet's static pods and must stay as the kubelet made them."""

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
"""The prefix of the only annotations that decisions depend on."""


class PodTemplateMemo(msgspec.Struct):
    """Decisions on recent specs, by namespace and identity of the spec."""

    plugins: tuple[PodPlugin, ...]
    listers: Listers
    mutated: BoundedCache[tuple[str, int], tuple[PodSpec, PodDraft]] = msgspec.field(
        default_factory=lambda: BoundedCache(1024)
    )
    validated: BoundedCache[tuple[str, int], tuple[PodSpec, str]] = msgspec.field(
        default_factory=lambda: BoundedCache(1024)
    )

    def forget(self, namespace: str) -> None:
        """Invalidates the decisions of one namespace, or (``""``) of all."""
        if not namespace:
            self.mutated.clear()
            self.validated.clear()
            return
        for known in (self.mutated, self.validated):
            for key, _ in known.items():
                if key[0] == namespace:
                    known.discard(key)

    def mutate(self, request: AdmissionAttributes) -> Any:
        """The mutated new pod."""
        pod = request.obj
        annotations = pod.metadata.annotations
        if annotations and MIRROR in annotations:
            reason = mirror_pod_error(pod)
            if reason:
                raise forbidden_error(request, reason)
            return self._mutate_mirror_pod(request, pod)
        spec = pod.spec
        key = (request.namespace, id(spec))
        known = self.mutated.get(key)
        if known is None:
            known = (spec, self._mutate_spec(request, PodDraft(spec, {})))
            self.mutated.put(key, known)
        draft = known[1]
        if draft.notes:
            meta = replace(pod.metadata, annotations={**annotations, **draft.notes})
            return replace(pod, metadata=meta, spec=draft.spec)
        return replace(pod, spec=draft.spec)

    def _mutate_mirror_pod(self, request: AdmissionAttributes, pod: Any) -> Any:
        """Mutates a mirror pod by all plugins but ServiceAccount, since it must not have one."""
        draft = self._mutate_spec(request, PodDraft(pod.spec, {}), except_plugin="ServiceAccount")
        meta = replace(pod.metadata, annotations={**pod.metadata.annotations, **draft.notes})
        return put(pod, spec=draft.spec, metadata=meta)

    def _mutate_spec(
        self, request: AdmissionAttributes, draft: PodDraft, except_plugin: str = ""
    ) -> PodDraft:
        try:
            for plugin in self.plugins:
                if plugin.name != except_plugin:
                    draft = plugin.mutate_spec(draft, request.namespace, self.listers)
        except AdmissionDenied as refused:
            raise forbidden_error(request, str(refused)) from None
        return draft

    def validate(self, request: AdmissionAttributes) -> None:
        """Denies a new pod if a plugin does."""
        pod = request.obj
        annotations = pod.metadata.annotations
        if annotations and any(name.startswith(APPARMOR) for name in annotations):
            reason = self._validate_spec(pod, request.namespace)
        else:
            key = (request.namespace, id(pod.spec))
            known = self.validated.get(key)
            if known is None:
                known = (pod.spec, self._validate_spec(pod, request.namespace))
                self.validated.put(key, known)
            reason = known[1]
        if reason:
            raise forbidden_error(request, reason)

    def _validate_spec(self, pod: Any, namespace: str) -> str:
        for plugin in self.plugins:
            reason = plugin.validate_spec(pod.spec, pod.metadata.annotations, namespace, self.listers)
            if reason:
                return reason
        return ""
