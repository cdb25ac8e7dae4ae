"""Answers of simulated kubelets that need no control plane."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated.core_v1 import Pod
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.sim.kubelet.kubelet_endpoint import KubeletEndpoint


@pytest.mark.parametrize("named", ["000080123", "0", "65536", "-1", "a", "", "٣", "1" * 5000])
async def test_an_annotation_that_is_no_port_is_an_error_of_the_connection(named: str) -> None:
    no_kubelets: Any = None
    endpoint = KubeletEndpoint(no_kubelets, allow_exec=True)
    pod = Pod(metadata=ObjectMeta(name="p", annotations={"sim.steersman.dev/port.80": named}))
    with pytest.raises(OSError, match="is no port"):
        await endpoint.dial(pod, 80)
