"""Simulated storage: a provisioner for the default StorageClass, and a CSI driver. No byte is ever stored.

The parts that run beside a storage driver in a real cluster (external-provisioner, external-attacher, external-resizer) are
controllers here, too: see `steersman.sim.storage.provisioner`, `attacher`, `resizer` and `registrar`.
"""

from steersman.sim.storage.simulated_storage import SimulatedStorage, install

__all__ = ["SimulatedStorage", "install"]
