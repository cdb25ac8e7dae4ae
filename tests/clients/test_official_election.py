"""The official client for Python: its leader election, by a Lease and by a ConfigMap."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

WAIT = 60


class Resigned(Exception):
    """A leader has had enough."""


@pytest.mark.parametrize("lock", [LeaseLock, ConfigMapLock], ids=["lease", "configmap"])
def test_one_leads_and_another_takes_over(
    plane: Any, namespace: str, lock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The election makes a client of its own, by what is set for all.
    made = client.Configuration()
    config.load_kube_config(str(plane.kubeconfig), client_configuration=made)
    monkeypatch.setattr(client.Configuration, "_default", made)
    led: list[str] = []
    begun, enough = threading.Event(), threading.Event()
    over = {name: threading.Event() for name in ("a", "b")}

    def lead(name: str) -> None:
        led.append(name)
        begun.set()
        if name == "a":
            assert enough.wait(WAIT)
        raise Resigned

    def stand(name: str) -> threading.Thread:
        settings = electionconfig.Config(
            lock("election", namespace, name),
            lease_duration=3,
            renew_deadline=2,
            retry_period=1,
            onstarted_leading=lambda: lead(name),
            onstopped_leading=over[name].set,
        )
        # Less than it lets one ask for, so that nobody has to wait.
        settings.lease_duration, settings.retry_period = 1, 0.1
        thread = threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True)
        thread.start()
        return thread

    first = stand("a")
    assert begun.wait(WAIT)
    second = stand("b")
    enough.set()
    assert over["a"].wait(WAIT)
    assert over["b"].wait(WAIT)
    for thread in (first, second):
        thread.join(WAIT)
    assert led == ["a", "b"]
