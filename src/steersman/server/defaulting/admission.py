"""Defaults of admission webhooks and policies."""

from __future__ import annotations

from typing import TypeVar

from steersman.api.generated import admissionregistration_v1 as admission
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.defaulting.missing_fields import each, maybe, put, unset

_EVERYTHING = LabelSelector()

Rule = TypeVar("Rule", admission.RuleWithOperations, admission.NamedRuleWithOperations)
Hook = TypeVar("Hook", admission.MutatingWebhook, admission.ValidatingWebhook)


def mutating_webhooks(obj: admission.MutatingWebhookConfiguration) -> admission.MutatingWebhookConfiguration:
    return put(obj, webhooks=each(obj.webhooks, lambda hook: unset(_hook(hook), reinvocationPolicy="Never")))


def validating_webhooks(
    obj: admission.ValidatingWebhookConfiguration,
) -> admission.ValidatingWebhookConfiguration:
    return put(obj, webhooks=each(obj.webhooks, _hook))


def _hook(hook: Hook) -> Hook:
    client = hook.clientConfig
    service = maybe(client.service, lambda given: unset(given, port=443))
    hook = unset(
        hook,
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector=_EVERYTHING,
        objectSelector=_EVERYTHING,
        timeoutSeconds=10,
    )
    return put(hook, clientConfig=put(client, service=service), rules=each(hook.rules, _rule))


def _rule(rule: Rule) -> Rule:
    return unset(rule, scope="*")


def _match(given: admission.MatchResources) -> admission.MatchResources:
    given = unset(given, matchPolicy="Equivalent", namespaceSelector=_EVERYTHING, objectSelector=_EVERYTHING)
    return put(
        given,
        resourceRules=each(given.resourceRules, _rule),
        excludeResourceRules=each(given.excludeResourceRules, _rule),
    )


def validating_policy(obj: admission.ValidatingAdmissionPolicy) -> admission.ValidatingAdmissionPolicy:
    spec = unset(obj.spec, failurePolicy="Fail")
    return put(obj, spec=put(spec, matchConstraints=maybe(spec.matchConstraints, _match)))


def mutating_policy(obj: admission.MutatingAdmissionPolicy) -> admission.MutatingAdmissionPolicy:
    spec = unset(obj.spec, failurePolicy="Fail")
    return put(obj, spec=put(spec, matchConstraints=maybe(spec.matchConstraints, _match)))


def validating_binding(
    obj: admission.ValidatingAdmissionPolicyBinding,
) -> admission.ValidatingAdmissionPolicyBinding:
    return put(obj, spec=put(obj.spec, matchResources=maybe(obj.spec.matchResources, _match)))


def mutating_binding(
    obj: admission.MutatingAdmissionPolicyBinding,
) -> admission.MutatingAdmissionPolicyBinding:
    return put(obj, spec=put(obj.spec, matchResources=maybe(obj.spec.matchResources, _match)))
