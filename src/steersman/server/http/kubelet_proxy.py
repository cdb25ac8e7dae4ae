"""What only kubelets can answer: logs, commands, ports. Here nobody is asked, since the nodes are simulated.

What the API server itself says before it asks one is said as upstream.
"""

from __future__ import annotations

from steersman.api.errors import BadRequest, ServerError
from steersman.api.generated.core_v1 import Pod
from steersman.server.http.context import Context
from steersman.server.http.request_info import first
from steersman.server.http.responses import Answer
from steersman.server.registry.resources import Resource

SUBRESOURCES = ("attach", "exec", "log", "portforward", "proxy")


def answer(ctx: Context, resource: Resource, namespace: str) -> Answer:
    """A request for one of the above. Raises what it is refused with."""
    asked = ctx.asked
    found = ctx.server.get(resource, namespace, asked.name)
    if isinstance(found, Pod) and asked.subresource != "proxy":
        if asked.subresource != "portforward":
            _check(found, first(ctx.query, "container"))
        if not found.spec.nodeName:
            if asked.subresource == "log":
                # As upstream: what no node has yet has said nothing yet.
                return Answer(b"", 204, "text/plain")
            raise BadRequest(f"pod {asked.name} does not have a host assigned")
    raise ServerError(
        f"{resource.plural}/{asked.subresource} is not available: "
        "the nodes of this control plane are simulated, there is no kubelet to ask",
        code=501,
        reason="NotImplemented",
    )


def _check(pod: Pod, container: str) -> None:
    """Whether it is clear which container is meant. Raises `BadRequest`."""
    spec, name = pod.spec, pod.metadata.name
    names = [each.name for each in (*spec.initContainers, *spec.containers)]
    names += [each.name for each in spec.ephemeralContainers]
    if container and container not in names:
        raise BadRequest(f"container {container} is not valid for pod {name}")
    if not container and len(spec.containers) > 1:
        raise BadRequest(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
