"""Printers of admission webhooks, admission policies and their bindings, and flow control."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.api.label_selectors import format_as_go
from steersman.server.tables.cells import age
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns, integer

if TYPE_CHECKING:
    from steersman.api.generated.admissionregistration_v1 import (
        MutatingAdmissionPolicy,
        MutatingAdmissionPolicyBinding,
        MutatingWebhookConfiguration,
        ParamKind,
        ParamRef,
        ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding,
        ValidatingWebhookConfiguration,
    )
    from steersman.api.generated.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration
    from steersman.api.generated.meta_v1 import ObjectMeta


def webhook_configuration_cells(
    configuration: MutatingWebhookConfiguration | ValidatingWebhookConfiguration, now: datetime
) -> tuple[Cell, ...]:
    """The cells of a mutating or validating webhook configuration."""
    metadata = configuration.metadata
    return metadata.name, len(configuration.webhooks), age(metadata.creationTimestamp, now)


def validating_policy_cells(policy: ValidatingAdmissionPolicy, now: datetime) -> tuple[Cell, ...]:
    return _policy_cells(policy.metadata, len(policy.spec.validations), policy.spec.paramKind, now)


def mutating_policy_cells(policy: MutatingAdmissionPolicy, now: datetime) -> tuple[Cell, ...]:
    return _policy_cells(policy.metadata, len(policy.spec.mutations), policy.spec.paramKind, now)


def _policy_cells(
    metadata: ObjectMeta, count: int, param_kind: ParamKind | None, now: datetime
) -> tuple[Cell, ...]:
    kind = "<unset>" if param_kind is None else f"{param_kind.apiVersion}/{param_kind.kind}"
    return metadata.name, count, kind, age(metadata.creationTimestamp, now)


def policy_binding_cells(
    binding: ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding, now: datetime
) -> tuple[Cell, ...]:
    """The cells of a mutating or validating policy binding."""
    return (
        binding.metadata.name,
        binding.spec.policyName,
        _format_param_ref(binding.spec.paramRef),
        age(binding.metadata.creationTimestamp, now),
    )


def _format_param_ref(reference: ParamRef | None) -> str:
    if reference is not None:
        if reference.name:
            # The scope of the parameter's resource is unknown here.
            return f"{reference.namespace or '*'}/{reference.name}"
        if reference.selector is not None:
            return format_as_go(reference.selector)
    return "<unset>"


def flow_schema_cells(schema: FlowSchema, now: datetime) -> tuple[Cell, ...]:
    method = schema.spec.distinguisherMethod
    dangling = (each.status for each in schema.status.conditions if each.type == "Dangling")
    return (
        schema.metadata.name,
        schema.spec.priorityLevelConfiguration.name,
        schema.spec.matchingPrecedence,
        "<none>" if method is None else method.type,
        age(schema.metadata.creationTimestamp, now),
        next(dangling, "?"),
    )


def _by_precedence(schema: FlowSchema) -> tuple[int, str]:
    return schema.spec.matchingPrecedence, schema.metadata.name


def priority_level_cells(level: PriorityLevelConfiguration, now: datetime) -> tuple[Cell, ...]:
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
        age(level.metadata.creationTimestamp, now),
    )


_WEBHOOKS = Printer(columns(NAME, integer("Webhooks"), "Age"), webhook_configuration_cells)
_BINDING = Printer(columns(NAME, "PolicyName", "ParamRef", "Age"), policy_binding_cells)

PRINTERS: Printers = {
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": Printer(
        columns(NAME, integer("Validations"), "ParamKind", "Age"),
        validating_policy_cells,
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": Printer(
        columns(NAME, integer("Mutations"), "ParamKind", "Age"),
        mutating_policy_cells,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "flowschemas.flowcontrol.apiserver.k8s.io": Printer(
        columns(NAME, "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        flow_schema_cells,
        order=_by_precedence,
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": Printer(
        columns(NAME, "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        priority_level_cells,
    ),
}
