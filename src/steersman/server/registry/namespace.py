"""Namespaces: two sets of finalizers, and a phase that shows they are going."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.core_v1 import Namespace, NamespaceStatus
from steersman.server.defaulting.core import default_namespace as labelled
from steersman.server.registry.strategy import WriteContext

FINALIZER = "kubernetes"
"""The one in the spec: the namespace controller removes it once the namespace is empty."""

IMMORTAL = ("default", "kube-public", "kube-system")


def created(namespace: Namespace, context: WriteContext) -> Namespace:
    finalizers = namespace.spec.finalizers
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    # A generated name was not known yet when defaults were filled in.
    namespace = labelled(namespace)
    return replace(
        namespace,
        spec=replace(namespace.spec, finalizers=finalizers),
        status=NamespaceStatus(phase="Active"),
    )


def updated(new: Namespace, old: Namespace, context: WriteContext) -> Namespace:
    spec = replace(new.spec, finalizers=old.spec.finalizers)
    return replace(labelled(new), spec=spec, status=old.status)


def finalized(new: Namespace, old: Namespace, context: WriteContext) -> Namespace:
    """The finalize subresource: the only way to remove a finalizer from the spec."""
    return replace(labelled(new), status=old.status)


def ends(namespace: Namespace) -> bool:
    return not namespace.spec.finalizers
