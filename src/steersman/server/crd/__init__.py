"""CustomResourceDefinitions and the custom resources they make.

::

    life        names, establishing, serving, the end      naming       who may be called what
    definitions what is refused of a definition            specs, webhooks, approvals
    schemas     what is refused of its schemas             structure, defaults
    version     one version: prune, fill in, check         pruning, filling, checks, lists, embedded
    resource    how the server treats its objects          custom, scale
    warnings    what a definition asks for that is not done here
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from steersman.server.registry.strategy import WriteContext
    from steersman.server.server import Server

GROUP, VERSION, PLURAL = "apiextensions.k8s.io", "v1", "customresourcedefinitions"


def install(server: Server) -> None:
    """Let a server have custom resources.

    Most servers never see a definition, so what it takes is loaded when the first one comes. Those there are
    already are served at once.
    """
    resource = server.registry.find(GROUP, VERSION, PLURAL)
    if len(server.table(resource)):
        _load(server)
        return

    def default(definition: Any) -> Any:
        _load(server)
        return server.registry.find(GROUP, VERSION, PLURAL).strategy.default(definition)

    def prepare_for_create(definition: Any, context: WriteContext) -> Any:
        return server.registry.find(GROUP, VERSION, PLURAL).strategy.prepare_for_create(definition, context)

    first = replace(resource.strategy, default=default, prepare_for_create=prepare_for_create)
    server.registry.add(replace(resource, strategy=first))


def _load(server: Server) -> None:
    from steersman.server.crd.establishing import Definitions

    Definitions(server)
