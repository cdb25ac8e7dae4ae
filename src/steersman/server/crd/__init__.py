"""CustomResourceDefinitions and the custom resources they define.

::

    establishing       the controller that accepts names, establishes, serves and cleans up definitions
    conditions         the conditions of a definition: NamesAccepted, Established, NonStructuralSchema, API approval
    definitions        defaulting and validation of definitions    spec_validation, webhooks, schema_validation
    structural_schema  structural schemas, and walks along them
    version            one version, compiled: pruning, defaulting, value_validation (with combinators,
                       number_validation, formats), embedded resources, list types
    rules              validation rules, compiled and evaluated     rule_validation: of definitions
    resource           the strategy of custom resources             custom, scale, paths
    conversion         conversion webhooks
    warnings           warnings about definitions and custom resources
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from steersman.server.registry.strategy import WriteContext
    from steersman.server.server import Server

GROUP, VERSION, PLURAL = "apiextensions.k8s.io", "v1", "customresourcedefinitions"


def install(server: Server) -> None:
    """Installs custom resources in a server.

    Most servers never have a definition, so the modules are imported when the first one is created. Existing
    definitions are served at once.
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
    from steersman.server.crd.establishing import EstablishingController

    EstablishingController(server)
