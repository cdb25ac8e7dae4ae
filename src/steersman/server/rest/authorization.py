"""Authorization of what a request really does, where its verb and resource do not say it.

The verb, the resource and the name of a request are authorized before it is carried out. Some requests do more: an update
creates an object, a role grants rights, a policy reads its parameters, a status allocates a device. The authorizer
is always that of the server which carries the request out, so a fork decides by its own roles and bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from steersman.api.errors import NotFound
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, authorize, forbidden
from steersman.server.auth.users import MASTERS, NODE_NAME, User, split_service_account
from steersman.server.rest.request import Request
from steersman.server.server import Server
from steersman.server.status_errors import FieldError
from steersman.server.validation.names import dns1123_subdomain

if TYPE_CHECKING:
    from steersman.api.generated.resource_v1 import AllocatedDeviceStatus, AllocationResult
    from steersman.server.auth.rbac import RBACAuthorizer

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_STREAMS = ("attach", "exec", "portforward")


def attributes_of(request: Request, verb: str = "") -> Attributes:
    """The attributes of a request, with its own verb or another."""
    resource = request.resource
    # A namespace is within itself, so roles there may be about it.
    scope = request.name if resource.id == "namespaces" else request.namespace
    return Attributes(
        request.user,
        verb or request.verb,
        resource.group,
        resource.plural,
        request.subresource,
        scope,
        request.name,
    )


def authorize_create(server: Server, request: Request) -> None:
    """Refuses an update or apply that would create an object, unless its user may create it."""
    if request.verb != "create":
        authorize(server.authorizer, attributes_of(request, "create"))


def authorize_stream(server: Server, request: Request) -> None:
    """Refuses exec, attach and port forwarding to users who may not create them: a GET that upgrades does the same."""
    if server.authorizer is None or request.verb == "create" or request.subresource not in _STREAMS:
        return
    decision = server.authorizer.authorize(attributes_of(request, "create"))
    if not decision.allowed:
        resource = request.resource
        raise status_errors.forbidden(resource.group, resource.plural, request.name, decision.reason)


def authorize_grant(server: Server, request: Request, new: Any, old: Any = None) -> None:
    """Refuses a role or binding that grants rights which its author does not have."""
    if request.resource.group != _RBAC or server.authorizer is None:
        return
    # Imported when first needed: most servers in tests have no authorizer.
    from steersman.server.auth import escalation

    escalation.check(
        server.authorizer, request.user, new, old, namespace=request.namespace, name=request.name
    )


def field_errors(
    server: Server, request: Request, new: Any, old: Any, wrong: list[FieldError]
) -> list[FieldError]:
    """The errors of a write with those of fields that its user has no right to set. ``wrong`` are all others."""
    if request.resource.group == "resource.k8s.io":
        wrong = _admin_access_errors(server, request, new, old) + wrong
    if server.authorizer is None:
        return wrong
    check = _FIELD_CHECKS.get((request.resource.id, request.subresource))
    if check is None:
        return wrong
    return check(server, server.authorizer, request, new, old, wrong)


# -- admin access to devices ------------------------------------------------------------------

_ADMIN_ACCESS = "resource.kubernetes.io/admin-access"


def _admin_access_errors(server: Server, request: Request, new: Any, old: Any) -> list[FieldError]:
    """The error of a claim or its allocation with access to devices that are in use, in a namespace without the right to it."""
    path = _admin_access(request, new, old)
    if not path:
        return []
    namespaces = server.registry.find("", "v1", "namespaces")
    labels = server.get(namespaces, "", request.namespace).metadata.labels
    if labels.get(_ADMIN_ACCESS) == "true":
        return []
    why = f"admin access to devices requires the `{_ADMIN_ACCESS}: true` label on the containing namespace"
    return [status_errors.field_forbidden(path, why)]


def _admin_access(request: Request, new: Any, old: Any) -> str:
    """The path of the first field that asks for admin access; empty where none does, or one did before."""
    match request.resource.id, request.subresource:
        case ("resourceclaims.resource.k8s.io", "status"):
            before = _results(old)
            if any(each.adminAccess for each in before):
                return ""
            results = enumerate(_results(new))
            paths = (f"status.allocation.devices.results[{i}]" for i, each in results if each.adminAccess)
        case (("resourceclaims.resource.k8s.io" | "resourceclaimtemplates.resource.k8s.io") as id_, "") if (
            old is None
        ):
            spec = new.spec if id_ == "resourceclaims.resource.k8s.io" else new.spec.spec
            requests = enumerate(spec.devices.requests or ())
            # As upstream, also the path of a template's begins at the spec of its claims.
            paths = (
                f"spec.devices.requests[{i}]"
                for i, each in requests
                if each.exactly is not None and each.exactly.adminAccess
            )
        case _:
            return ""
    first = next(paths, "")
    return f"{first}.adminAccess" if first else ""


def _results(claim: Any) -> tuple[Any, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else tuple(allocation.devices.results)


# -- parameters of admission policies ---------------------------------------------------------


def _policy_errors(
    server: Server, authorizer: RBACAuthorizer, request: Request, new: Any, old: Any, wrong: list[FieldError]
) -> list[FieldError]:
    """The author of a policy must be allowed to read every object of its paramKind."""
    kind = new.spec.paramKind
    if wrong or kind is None or (old is not None and old.spec.paramKind == kind) or _is_master(request.user):
        return wrong
    group, resource, _ = _param_resource(server, kind)
    asked = Attributes(request.user, "get", group, resource, namespace="*", name="*")
    if authorizer.authorize(asked).allowed:
        return wrong
    why = (
        f'user {_printed(request.user)} must have "get" permission on all objects of the referenced paramKind '
        f"(kind={kind.kind}, apiVersion={kind.apiVersion})"
    )
    return [status_errors.field_forbidden("spec.paramKind", why)]


def _policy_binding_errors(
    server: Server, authorizer: RBACAuthorizer, request: Request, new: Any, old: Any, wrong: list[FieldError]
) -> list[FieldError]:
    """The author of a policy binding must be allowed to read the objects that its paramRef names."""
    ref, user = new.spec.paramRef, request.user
    if wrong or ref is None or _is_master(user) or (old is not None and _same_parameters(new.spec, old.spec)):
        return wrong
    verb = "get" if ref.name else "list"
    group = resource = "*"
    unknown = ""
    policies = request.resource.plural.replace("policybindings", "policies")
    try:
        policy = server.get(server.registry.find(_ADMISSION, "v1", policies), "", new.spec.policyName)
    except NotFound:
        unknown = f"get policy {new.spec.policyName}"
    else:
        kind = policy.spec.paramKind
        if kind is not None:
            group, resource, problem = _param_resource(server, kind)
            if problem:
                unknown = f"{problem} paramKind &ParamKind{{APIVersion:{kind.apiVersion},Kind:{kind.kind},}}"
    asked = Attributes(user, verb, group, resource, namespace=ref.namespace or "", name=ref.name or "")
    if authorizer.authorize(asked).allowed:
        return wrong
    if unknown:
        why = (
            f"unable to {unknown} to determine minimum required permissions and user {_printed(user)} "
            f'does not have "{verb}" permission for all groups, versions and resources'
        )
    else:
        # Upstream mixes up the two for policies that mutate.
        one, other = (verb, _printed(user)) if policies.startswith("mutating") else (_printed(user), verb)
        why = f'user {one} does not have "{other}" permission on the object referenced by paramRef'
    return [status_errors.field_forbidden("spec.paramRef", why)]


def _same_parameters(new: Any, old: Any) -> bool:
    """Whether an update leaves the parameters, as upstream compares them: what is set by pointer never is the same."""
    ref = new.paramRef
    is_plain = ref.selector is None and ref.parameterNotFoundAction is None
    return is_plain and old.paramRef == ref and old.policyName == new.policyName


def _param_resource(server: Server, kind: Any) -> tuple[str, str, str]:
    """The group and the plural of a paramKind, ``*`` where unknown, and what could not be done with it."""
    group, slash, version = kind.apiVersion.partition("/")
    if "/" in version or not kind.apiVersion:
        return "*", "*", "parse"
    group, version = (group, version) if slash else ("", group)
    plural = server.registry.plural_of(group, version, kind.kind)
    return group, plural or "*", "" if plural else "resolve"


def _is_master(user: User) -> bool:
    return MASTERS in user.groups


def _printed(user: User) -> str:
    """A user as Go prints the struct."""
    extra = " ".join(f"{key}:[{' '.join(user.extra[key])}]" for key in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


# -- status of resource claims ----------------------------------------------------------------


def _claim_errors(
    server: Server, authorizer: RBACAuthorizer, request: Request, new: Any, old: Any, wrong: list[FieldError]
) -> list[FieldError]:
    """Allocating a claim needs a right to ``resourceclaims/binding``, reporting devices one to their driver."""
    found: list[FieldError] = []
    now, was = new.status, old.status
    asked = attributes_of(request)
    if (now.allocation, now.reservedFor) != (was.allocation, was.reservedFor):
        attributes = asked._replace(subresource="binding", namespace="", name="")
        decision = authorizer.authorize(attributes)
        if not decision.allowed:
            why = (
                'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
                f'verb="{request.verb}" permission: {forbidden(attributes, decision.reason).message}'
            )
            found.append(status_errors.field_forbidden("status.allocation", why))
    if now.allocation is not None:
        verbs = [f"arbitrary-node:{request.verb}"]
        if _is_on_node(request.user, _allocated_node(now.allocation)):
            verbs.insert(0, f"associated-node:{request.verb}")
        for driver in sorted(_changed_drivers(now.devices, was.devices)):
            attempts = [asked._replace(verb=verb, subresource="driver", name=driver) for verb in verbs]
            decisions = [authorizer.authorize(attempt) for attempt in attempts]
            if not any(decision.allowed for decision in decisions):
                why = (
                    'changing status.devices requires resource="resourceclaims/driver", '
                    f'verb="[{" ".join(verbs)}]" permission: '
                    f"{forbidden(attempts[0], decisions[0].reason).message}"
                )
                found.append(status_errors.field_forbidden("status.devices", why))
    return [*found, *wrong]


def _changed_drivers(
    new: tuple[AllocatedDeviceStatus, ...], old: tuple[AllocatedDeviceStatus, ...]
) -> set[str]:
    """The drivers whose devices are added, removed or changed."""
    now, was = (
        {(each.driver, each.pool, each.device, each.shareID or ""): each for each in devices}
        for devices in (new, old)
    )
    return {key[0] for key in (*now, *was) if now.get(key) != was.get(key)}


def _allocated_node(allocation: AllocationResult) -> str:
    """The node that an allocation is limited to; empty if it is not limited to one."""
    selector = allocation.nodeSelector
    if selector is None or len(selector.nodeSelectorTerms) != 1:
        return ""
    (term,) = selector.nodeSelectorTerms
    if term.matchExpressions or len(term.matchFields) != 1:
        return ""
    (field,) = term.matchFields
    is_name = field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1
    return field.values[0] if is_name else ""


def _is_on_node(user: User, node: str) -> bool:
    """Whether a user is the ServiceAccount of a pod on a node."""
    if not node or split_service_account(user.name) is None:
        return False
    return user.extra.get(NODE_NAME, ()) == (node,) and not dns1123_subdomain(node)


_FieldCheck = Callable[["Server", "RBACAuthorizer", Request, Any, Any, list[FieldError]], list[FieldError]]

_FIELD_CHECKS: Mapping[tuple[str, str], _FieldCheck] = {
    (f"validatingadmissionpolicies.{_ADMISSION}", ""): _policy_errors,
    (f"mutatingadmissionpolicies.{_ADMISSION}", ""): _policy_errors,
    (f"validatingadmissionpolicybindings.{_ADMISSION}", ""): _policy_binding_errors,
    (f"mutatingadmissionpolicybindings.{_ADMISSION}", ""): _policy_binding_errors,
    ("resourceclaims.resource.k8s.io", "status"): _claim_errors,
}
"""By resource id and subresource: the fields that need a right of their own."""
