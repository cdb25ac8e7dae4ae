"""Defaults of admission webhooks and policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from steersman.api.generated import admissionregistration_v1 as admission
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_base64,
    default_if_none,
    map_items,
    map_optional,
    put,
)

_SELECT_ALL = LabelSelector()

Rule = TypeVar("Rule", admission.RuleWithOperations, admission.NamedRuleWithOperations)
Webhook = TypeVar("Webhook", admission.MutatingWebhook, admission.ValidatingWebhook)


def default_mutating_webhooks(
    obj: admission.MutatingWebhookConfiguration,
) -> admission.MutatingWebhookConfiguration:
    return put(
        obj,
        webhooks=map_items(
            obj.webhooks,
            lambda webhook: default_if_none(_default_webhook(webhook), reinvocationPolicy="Never"),
        ),
    )


def default_validating_webhooks(
    obj: admission.ValidatingWebhookConfiguration,
) -> admission.ValidatingWebhookConfiguration:
    return put(obj, webhooks=map_items(obj.webhooks, _default_webhook))


def _default_webhook(webhook: Webhook) -> Webhook:
    client = webhook.clientConfig
    bundle = map_optional(client.caBundle, canonical_base64)
    service = map_optional(client.service, lambda given: default_if_none(given, port=443))
    webhook = default_if_none(
        webhook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector=_SELECT_ALL,
        objectSelector=_SELECT_ALL,
        timeoutSeconds=10,
    )
    return put(
        webhook,
        clientConfig=put(client, service=service, caBundle=bundle),
        rules=map_items(webhook.rules, _default_rule),
    )


def _default_rule(rule: Rule) -> Rule:
    return default_if_none(rule, scope="*")


def _default_match_resources(given: admission.MatchResources) -> admission.MatchResources:
    given = default_if_none(
        given, matchPolicy="Equivalent", namespaceSelector=_SELECT_ALL, objectSelector=_SELECT_ALL
    )
    return put(
        given,
        resourceRules=map_items(given.resourceRules, _default_rule),
        excludeResourceRules=map_items(given.excludeResourceRules, _default_rule),
    )


def default_validating_policy(
    obj: admission.ValidatingAdmissionPolicy,
) -> admission.ValidatingAdmissionPolicy:
    spec = default_if_none(obj.spec, failurePolicy="Fail")
    return put(
        obj, spec=put(spec, matchConstraints=map_optional(spec.matchConstraints, _default_match_resources))
    )


def default_mutating_policy(obj: admission.MutatingAdmissionPolicy) -> admission.MutatingAdmissionPolicy:
    spec = default_if_none(obj.spec, failurePolicy="Fail")
    return put(
        obj, spec=put(spec, matchConstraints=map_optional(spec.matchConstraints, _default_match_resources))
    )


def default_validating_binding(
    obj: admission.ValidatingAdmissionPolicyBinding,
) -> admission.ValidatingAdmissionPolicyBinding:
    return put(
        obj,
        spec=put(obj.spec, matchResources=map_optional(obj.spec.matchResources, _default_match_resources)),
    )


def default_mutating_binding(
    obj: admission.MutatingAdmissionPolicyBinding,
) -> admission.MutatingAdmissionPolicyBinding:
    return put(
        obj,
        spec=put(obj.spec, matchResources=map_optional(obj.spec.matchResources, _default_match_resources)),
    )


DEFAULTS: Mapping[GroupKind, Default] = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): default_mutating_policy,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): default_mutating_binding,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): default_mutating_webhooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): default_validating_policy,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): default_validating_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): default_validating_webhooks,
}
