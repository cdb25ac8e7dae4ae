"""Simulated kubelets: any number of nodes in one object, over any `Api`. Nothing is ever started."""

from steersman.sim.kubelet.kubelets import Kubelets
from steersman.sim.kubelet.node import Shape
from steersman.sim.kubelet.pod_plan import KubeletSettings

__all__ = ["KubeletSettings", "Kubelets", "Shape"]
