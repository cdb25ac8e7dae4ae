"""Admission: the built-in plugins of kube-apiserver 1.36 that users and controllers rely on.

Each plugin is a small frozen value: it changes a request, then (once names are generated and the object is
valid) refuses it or lets it pass. They decide by what they look up and nothing else. A server is given
them as an extension, so that its forks have them, too::

    server.extend(admission.default())

The namespace's life cycle (`steersman.server.admission.namespace_lifecycle`) comes before all of them. Webhooks and admission
policies are not evaluated; whoever creates one is told so by `Chain.warnings`.
"""

from __future__ import annotations

from dataclasses import dataclass

from steersman.server.admission.certificates import (
    Allows,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    always_allowed,
)
from steersman.server.admission.chain import Chain
from steersman.server.admission.default_ingress_class import DefaultIngressClass
from steersman.server.admission.default_toleration_seconds import DefaultTolerationSeconds
from steersman.server.admission.limit_ranger import LimitRanger
from steersman.server.admission.plugin import Plugin
from steersman.server.admission.pod_security import PodSecurity
from steersman.server.admission.priority import Priority
from steersman.server.admission.resource_quota import ResourceQuota
from steersman.server.admission.runtime_class import RuntimeClass
from steersman.server.admission.service_account import ServiceAccount
from steersman.server.admission.service_allocation import CIDR, Services, holds
from steersman.server.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from steersman.server.admission.taint_nodes import TaintNodesByCondition
from steersman.server.admission.webhook_warnings import Unasked
from steersman.server.server import Server

__all__ = ["CIDR", "Chain", "Plugin", "Plugins", "default", "standalone"]


@dataclass(frozen=True, slots=True)
class Plugins:
    """A choice of plugins, in the order they are asked. Extends a server."""

    plugins: tuple[Plugin, ...]

    def __call__(self, server: Server) -> None:
        server.admission = Chain(server, self.plugins, holds)

    def without(self, *names: str) -> Plugins:
        """The same but for some, by their names."""
        return Plugins(tuple(plugin for plugin in self.plugins if plugin.name not in names))


def default(*, cidr: str = CIDR, allows: Allows = always_allowed) -> Plugins:
    """All plugins, in the order of a real server. ``allows`` decides which users may act for a signer."""
    return Plugins(
        (
            LimitRanger(),
            ServiceAccount(),
            TaintNodesByCondition(),
            PodSecurity(),
            Priority(),
            DefaultTolerationSeconds(),
            DefaultStorageClass(),
            StorageObjectInUseProtection(),
            PersistentVolumeClaimResize(),
            RuntimeClass(),
            CertificateApproval(allows),
            CertificateSigning(allows),
            CertificateSubjectRestriction(),
            DefaultIngressClass(),
            Services(cidr),
            Unasked(),
            ResourceQuota(),
        )
    )


def standalone(*, cidr: str = CIDR) -> Plugins:
    """Those that need no controller beside the server.

    A pod needs an account, which is made by a controller, and a new node is tainted until one takes that away.
    """
    return default(cidr=cidr).without("ServiceAccount", "TaintNodesByCondition")
