"""What is served, for clients in the same process: the same as discovery's documents say, without the documents."""

from __future__ import annotations

from functools import cache

from steersman.api import generated
from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.server.discovery.documents import version_order
from steersman.server.registry.resources import Registry

CUSTOM = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def discovered(registry: Registry) -> DiscoveryResult:
    """Everything a registry serves now. It says the same until its generation changes."""
    built_in = _built_in()
    whole = {(each.group, each.version) for each in built_in}
    custom = sorted(registry.added(), key=lambda each: (each.group, version_order(each.version), each.plural))
    return DiscoveryResult(
        (
            *built_in,
            *(
                ApiResource(
                    each.group,
                    each.version,
                    each.kind,
                    each.plural,
                    each.namespaced,
                    CUSTOM if each.verbs is None else each.verbs,
                    each.subresources,
                )
                for each in custom
                # A version that is built in is built in as a whole.
                if (each.group, each.version) not in whole
            ),
        )
    )


@cache
def _built_in() -> tuple[ApiResource, ...]:
    return tuple(
        ApiResource(
            row.group,
            row.version,
            row.kind,
            row.plural,
            row.namespaced,
            row.verbs,
            tuple(part.name for part in row.subresources),
        )
        for row in generated.resources()
    )
