"""Admission: webhooks, policies and what binds them; and the fair queues before the server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from steersman.api.label_selectors import printed
from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns, integer

if TYPE_CHECKING:
    from steersman.api.generated.admissionregistration_v1 import (
        MutatingAdmissionPolicyBinding,
        ParamRef,
        ValidatingAdmissionPolicyBinding,
    )
    from steersman.api.generated.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration


def webhooks(found: Any, now: datetime) -> tuple[Cell, ...]:
    """The cells of a webhook configuration of either sort."""
    return found.metadata.name, len(found.webhooks), since(found.metadata.creationTimestamp, now)


def _policy(rules: Callable[[Any], int]) -> Callable[[Any, datetime], tuple[Cell, ...]]:
    def policy(found: Any, now: datetime) -> tuple[Cell, ...]:
        kind = found.spec.paramKind
        text = "<unset>" if kind is None else f"{kind.apiVersion}/{kind.kind}"
        return found.metadata.name, rules(found), text, since(found.metadata.creationTimestamp, now)

    return policy


def binding(
    found: ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding, now: datetime
) -> tuple[Cell, ...]:
    """The cells of a policy binding of either sort."""
    return (
        found.metadata.name,
        found.spec.policyName,
        _parameters(found.spec.paramRef),
        since(found.metadata.creationTimestamp, now),
    )


def _parameters(reference: ParamRef | None) -> str:
    if reference is not None:
        if reference.name:
            # Whether the parameter has a namespace cannot be told from here.
            return f"{reference.namespace or '*'}/{reference.name}"
        if reference.selector is not None:
            return printed(reference.selector)
    return "<unset>"


def flow_schema(schema: FlowSchema, now: datetime) -> tuple[Cell, ...]:
    method = schema.spec.distinguisherMethod
    dangling = (each.status for each in schema.status.conditions if each.type == "Dangling")
    return (
        schema.metadata.name,
        schema.spec.priorityLevelConfiguration.name,
        schema.spec.matchingPrecedence,
        "<none>" if method is None else method.type,
        since(schema.metadata.creationTimestamp, now),
        next(dangling, "?"),
    )


def _precedence(schema: FlowSchema) -> tuple[int, str]:
    return schema.spec.matchingPrecedence, schema.metadata.name


def priority_level(level: PriorityLevelConfiguration, now: datetime) -> tuple[Cell, ...]:
    limited = level.spec.limited
    queuing = limited.limitResponse.queuing if limited else None
    return (
        level.metadata.name,
        level.spec.type,
        "<none>" if limited is None else limited.nominalConcurrencyShares or 0,
        *(
            ("<none>",) * 3
            if queuing is None
            else (queuing.queues, queuing.handSize, queuing.queueLengthLimit)
        ),
        since(level.metadata.creationTimestamp, now),
    )


_WEBHOOKS = Printer(columns(NAME, integer("Webhooks"), "Age"), webhooks)
_BINDING = Printer(columns(NAME, "PolicyName", "ParamRef", "Age"), binding)

PRINTERS: Printers = {
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": Printer(
        columns(NAME, integer("Validations"), "ParamKind", "Age"),
        _policy(lambda policy: len(policy.spec.validations)),
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": Printer(
        columns(NAME, integer("Mutations"), "ParamKind", "Age"),
        _policy(lambda policy: len(policy.spec.mutations)),
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "flowschemas.flowcontrol.apiserver.k8s.io": Printer(
        columns(NAME, "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        flow_schema,
        order=_precedence,
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": Printer(
        columns(NAME, "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        priority_level,
    ),
}
