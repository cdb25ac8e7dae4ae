"""Admission: the built-in plugins of kube-apiserver 1.36 that users and controllers rely on.

Each plugin is a small frozen value: it mutates a request, then (once names are generated and the object is
valid) admits or denies it. Decisions depend only on the request and the objects a plugin looks up. A server gets
them as an extension, so that its forks have them, too::

    server.extend(admission.default())

`namespace_lifecycle` comes before all of them. Admission policies are in `policies`, webhooks in `webhooks`; `matching`
decides which requests both are asked about, and `expressions` has the variables of their CEL expressions.
"""

from __future__ import annotations

import msgspec

from steersman.server.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from steersman.server.admission.chain import Chain
from steersman.server.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from steersman.server.admission.limit_ranger import LimitRanger
from steersman.server.admission.node_restriction import NodeRestriction
from steersman.server.admission.plugin import Plugin
from steersman.server.admission.pod_group_protection import PodGroupProtection
from steersman.server.admission.pod_security import PodSecurity
from steersman.server.admission.priority import Priority
from steersman.server.admission.resource_quota import ResourceQuota
from steersman.server.admission.runtime_class import RuntimeClass
from steersman.server.admission.service_account import ServiceAccount
from steersman.server.admission.service_allocation import CIDR, ServiceAllocation, allocations_of
from steersman.server.admission.storage import PersistentVolumeClaimResize, StorageObjectInUseProtection
from steersman.server.admission.taints import DefaultTolerationSeconds, TaintNodesByCondition
from steersman.server.server import Server

__all__ = ["CIDR", "Chain", "Plugin", "Plugins", "default", "standalone"]


class Plugins(msgspec.Struct, frozen=True):
    """An ordered list of plugins. Extends a server."""

    plugins: tuple[Plugin, ...]

    def __call__(self, server: Server) -> None:
        server.admission = Chain(server, self.plugins, allocations_of)

    def without(self, *names: str) -> Plugins:
        """The plugins without those of some names."""
        return Plugins(tuple(plugin for plugin in self.plugins if plugin.name not in names))


def default(*, cidr: str = CIDR) -> Plugins:
    """All plugins, in upstream's order."""
    return Plugins(
        (
            LimitRanger(),
            ServiceAccount(),
            NodeRestriction(),
            TaintNodesByCondition(),
            PodSecurity(),
            Priority(),
            DefaultTolerationSeconds(),
            DefaultStorageClass(),
            StorageObjectInUseProtection(),
            PodGroupProtection(),
            PersistentVolumeClaimResize(),
            RuntimeClass(),
            CertificateApproval(),
            CertificateSigning(),
            CertificateSubjectRestriction(),
            DefaultIngressClass(),
            ServiceAllocation(cidr),
            ResourceQuota(),
        )
    )


def standalone(*, cidr: str = CIDR) -> Plugins:
    """The plugins that need no controllers beside the server.

    A controller creates the ServiceAccount that pods need, and another removes the taint of new nodes.
    """
    return default(cidr=cidr).without("ServiceAccount", "TaintNodesByCondition")
