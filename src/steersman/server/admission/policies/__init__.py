"""Admission policies: ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings.

A policy is evaluated for a request once for each of its bindings and each parameter of that. `PolicyAdmission` follows the
policies of a server; the module is imported when there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.errors import NotFound
from steersman.api.generated.admissionregistration_v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from steersman.api.label_selectors import compile_selector
from steersman.server.admission.expressions import Subject
from steersman.server.admission.forms import requested_resource
from steersman.server.admission.matching import (
    GROUP,
    Matcher,
    ServedVersions,
    compile_constraints,
    is_exempt,
    namespace_labels,
)
from steersman.server.admission.plugin import Listers
from steersman.server.admission.policies.mutating import Invocation, Mutations, compile_mutation
from steersman.server.admission.policies.validating import CompiledValidation, Denials, compile_validation
from steersman.server.codec.convert import to_document
from steersman.server.evaluation import Computation, EvaluationNeeded
from steersman.server.registry.resources import REVIEWS, Resource
from steersman.server.server import AdmissionAttributes, Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection

TABLES = tuple(
    f"{plural}.{GROUP}"
    for plural in (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
AnyPolicy: TypeAlias = ValidatingAdmissionPolicy | MutatingAdmissionPolicy
AnyBinding: TypeAlias = ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding


class BoundPolicy(msgspec.Struct, frozen=True):
    """A policy with its bindings, compiled."""

    policy: Any
    matcher: Matcher
    bindings: tuple[tuple[Any, Matcher | None], ...]
    """The bindings in the order of their names. Without matchResources, one matches whatever its policy does."""
    evaluator: Any
    """The compiled expressions."""


class ConfigurationError(Exception):
    """A policy or binding cannot be used as it is. Its failurePolicy decides."""


class PolicyAdmission:
    """The admission policies of one server."""

    def __init__(self, server: Server, listers: Listers) -> None:
        self._server = server
        self._listers = listers
        self._versions = ServedVersions(server.registry)
        self.validating: tuple[BoundPolicy, ...] = ()
        self.mutating: tuple[BoundPolicy, ...] = ()
        self._compiled: dict[str, tuple[str, Any]] = {}
        for table in TABLES:
            self.changed(table)

    def changed(self, table: str) -> None:
        """Compiles policies again, after one of them or of their bindings was written or removed."""
        if table in TABLES[:2]:
            self.validating = tuple(self._bound(TABLES[0], TABLES[1], compile_validation))
        else:
            self.mutating = tuple(self._bound(TABLES[2], TABLES[3], compile_mutation))

    def _bound(self, policies: str, bindings: str, compiled: Callable[[Any], Any]) -> Iterator[BoundPolicy]:
        by_policy: dict[str, list[Any]] = {}
        for binding in self._stored(bindings):
            by_policy.setdefault(binding.spec.policyName, []).append(binding)
        for policy in self._stored(policies):
            bound = by_policy.get(policy.metadata.name)
            if bound:
                matchers = tuple((each, _binding_matcher(each)) for each in bound)
                constraints = compile_constraints(policy.spec.matchConstraints)
                evaluator = self._evaluator(f"{policies}/{policy.metadata.name}", policy, compiled)
                yield BoundPolicy(policy, constraints, matchers, evaluator)

    def _stored(self, table: str) -> list[Any]:
        found = self._server.store.table(table).select(Selection())
        return sorted(found, key=lambda each: each.metadata.name)

    def _evaluator(self, key: str, policy: Any, compiled: Callable[[Any], Any]) -> Any:
        """The expressions of a policy, which are compiled once for each generation of it."""
        generation = f"{policy.metadata.uid}/{policy.metadata.generation}"
        known = self._compiled.get(key)
        if known is None or known[0] != generation:
            known = self._compiled[key] = (generation, compiled(policy))
        return known[1]

    # -- dispatching --------------------------------------------------------------------------

    def validate(self, request: AdmissionAttributes) -> None:
        """Evaluates validating policies. Raises the refusal of the first that denies; others may warn."""
        if _is_excluded(request.resource):
            return
        denials = Denials(self._server.request_warnings, self._server.annotate)
        needed: list[Computation] = []
        for bound, binding, param, matched in self._bound_to(request, self.validating, denials.misconfigured):
            evaluator: CompiledValidation = bound.evaluator
            try:
                decided = evaluator.decide(Subject(request, matched, self._listers, params=param))
            except EvaluationNeeded as evaluation:
                needed += evaluation.computations
            else:
                denials.add(bound.policy, binding, decided)
        if needed:
            raise EvaluationNeeded(needed)
        denials.refuse(request)

    def mutate(self, request: AdmissionAttributes, state: Mutations) -> Any:
        """The object after mutating policies. ``state`` tells which of them are evaluated a second time."""
        if _is_excluded(request.resource) or request.obj is None:
            return request.obj
        state.begin(request.obj)
        # All policies match the object as it was before the first of them.
        invocations = [
            Invocation(bound.policy, binding, param, matched, bound.evaluator)
            for bound, binding, param, matched in self._bound_to(request, self.mutating, state.misconfigured)
        ]
        for invocation in invocations:
            request = replace(request, obj=state.invoke(invocation, request, self._listers))
        state.refuse(request)
        state.end(request.obj)
        return request.obj

    def _bound_to(
        self,
        request: AdmissionAttributes,
        policies: tuple[BoundPolicy, ...],
        misconfigured: Callable[[Any, Any, str], None],
    ) -> Iterator[tuple[BoundPolicy, Any, Any, Resource]]:
        """The policies that match a request, each with every binding and parameter, and the version that its rules match."""
        for bound in policies:
            matched = self._matches(bound.matcher, request)
            if matched is None:
                continue
            try:
                scope = self._param_resource(bound.policy)
            except ConfigurationError as error:
                misconfigured(bound.policy, None, str(error))
                continue
            for binding, matcher in bound.bindings:
                if matcher is not None and self._matches(matcher, request) is None:
                    continue
                try:
                    params = self._params(bound.policy, scope, binding.spec.paramRef, request)
                except ConfigurationError as error:
                    misconfigured(bound.policy, binding, str(error))
                    continue
                for param in params:
                    yield bound, binding, param, matched

    def _matches(self, matcher: Matcher, request: AdmissionAttributes) -> Resource | None:
        requested = requested_resource(request)
        if requested is not request.resource:
            request = replace(request, resource=requested)
        return matcher.matches(request, self._namespace_labels, self._versions)

    def _namespace_labels(self, request: AdmissionAttributes) -> Mapping[str, str]:
        return namespace_labels(request, lambda name: self._listers.get("namespaces", "", name))

    # -- parameters ---------------------------------------------------------------------------

    def _param_resource(self, policy: AnyPolicy) -> Resource | None:
        kind = policy.spec.paramKind
        if kind is None:
            return None
        group, _, version = kind.apiVersion.rpartition("/")
        registry = self._server.registry
        plural = registry.plural_of(group, version, kind.kind)
        if not plural:
            shown = f"{group}/{version}, Kind={kind.kind}"
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")
        try:
            return registry.find(group, version, plural)
        except NotFound as error:
            raise ConfigurationError(str(error)) from None

    def _params(
        self,
        policy: AnyPolicy,
        resource: Resource | None,
        ref: ParamRef | None,
        request: AdmissionAttributes,
    ) -> list[Any]:
        """The parameters of a binding, as documents; None stands for a policy that has none."""
        if resource is None or ref is None:
            return [None]
        if not resource.namespaced and ref.namespace:
            raise ConfigurationError(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        namespace = ref.namespace or request.namespace if resource.namespaced else ""
        if request.resource.id == "namespaces" and not ref.namespace and resource.namespaced:
            namespace = request.name
        if resource.namespaced and not namespace:
            raise ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        table = self._server.table(resource)
        if ref.name:
            one = table.get(object_key(namespace, ref.name))
            found = [] if one is None else [one]
        else:
            selector = compile_selector(ref.selector)
            found = [
                each for each in table.select(Selection(namespace)) if selector.matches(each.metadata.labels)
            ]
        if not found and ref.parameterNotFoundAction == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        serve = resource.serve
        return [
            to_document(resource.api_version, resource.kind, each if serve is None else serve(each))
            for each in found
        ]


def _is_excluded(resource: Resource) -> bool:
    """Whether no policy is evaluated for a resource: those that are exempt, and reviews, without which no request could be authorized."""
    return is_exempt(resource) or resource.id in REVIEWS


def _binding_matcher(binding: AnyBinding) -> Matcher | None:
    resources = binding.spec.matchResources
    return None if resources is None else compile_constraints(resources)
