"""What this server does not do, said aloud: admission webhooks and policies are kept, never asked."""

from __future__ import annotations

from typing import ClassVar

from steersman.server.admission.plugin import Lookups, Plugin
from steersman.server.server import Attributes

GROUP = "admissionregistration.k8s.io"
_WEBHOOKS = {
    "mutatingwebhookconfigurations": "no request is sent to its webhooks, so nothing they would change is changed",
    "validatingwebhookconfigurations": "no request is sent to its webhooks, so nothing they would refuse is refused",
}
_POLICIES = {
    "mutatingadmissionpolicies": "nothing it would change is changed",
    "mutatingadmissionpolicybindings": "nothing its policy would change is changed",
    "validatingadmissionpolicies": "nothing it would refuse is refused",
    "validatingadmissionpolicybindings": "nothing its policy would refuse is refused",
}


class Unasked(Plugin):
    """Warns whoever creates or changes a webhook configuration or an admission policy."""

    name: ClassVar[str] = "Unasked"

    def warn(self, request: Attributes, look: Lookups) -> tuple[str, ...]:
        resource = request.resource
        if resource.group != GROUP or request.obj is None or request.subresource:
            return ()
        return warnings(resource.plural, resource.kind, request.obj.metadata.name)


def warnings(plural: str, kind: str, name: str) -> tuple[str, ...]:
    """What to tell about an object of the group admissionregistration.k8s.io."""
    what = _WEBHOOKS.get(plural) or _POLICIES.get(plural)
    return (f'{kind} "{name}" is stored but not evaluated by this server: {what}',) if what else ()
