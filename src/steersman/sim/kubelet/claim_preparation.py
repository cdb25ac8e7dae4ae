"""The kubelet's part of dynamic resource allocation: a pod starts once its ResourceClaims are allocated and reserved for it.

differs: a kubelet gets the claims of each pod and tries again later, with an event for each failure; here their changes are watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from steersman.api.clock import Clock
from steersman.api.generated import core_v1
from steersman.api.kinds import Pod
from steersman.api.kinds.devices import RESOURCECLAIMS
from steersman.api.resource_claims import ClaimNotCreated, UnsupportedClaim, claim_name, is_reserved_for
from steersman.api.scheme import Key
from steersman.client.api import Api
from steersman.runtime.informer import Informer


class ClaimPreparation:
    """The claims of pods on some nodes."""

    def __init__(self, api: Api, clock: Clock, ready: Callable[[Key], None]) -> None:
        """``ready`` is called with a pod that was not prepared and may be now."""
        self._claims = Informer(RESOURCECLAIMS, api, clock)
        self._ready = ready
        self._waiting: dict[Key, None] = {}

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start to watch the claims."""
        self._claims.subscribe(lambda change: self._wake())
        group.create_task(self._claims.run(), name="kubelets: resourceclaims")

    def is_prepared(self, pod: core_v1.Pod) -> bool:
        """Whether all claims of a pod are allocated and reserved for it. If not, `ready` will be called."""
        prepared = all(self._is_usable(pod, reference) for reference in pod.spec.resourceClaims)
        if prepared:
            self._waiting.pop(pod.key, None)
        else:
            self._waiting[pod.key] = None
        return prepared

    def forget(self, key: Key) -> None:
        """Forget a pod that is gone."""
        self._waiting.pop(key, None)

    def _wake(self) -> None:
        for key in tuple(self._waiting):
            self._ready(key)

    def _is_usable(self, pod: core_v1.Pod, reference: core_v1.PodResourceClaim) -> bool:
        view = cast("Pod", pod)  # the views have the same fields
        try:
            found = claim_name(view, reference)  # type: ignore[arg-type]
        except (ClaimNotCreated, UnsupportedClaim):
            return False
        if found.name is None:
            return True
        claim = self._claims.store.get(Key(pod.metadata.namespace, found.name))
        return claim is not None and claim.status.allocation is not None and is_reserved_for(view, claim)
