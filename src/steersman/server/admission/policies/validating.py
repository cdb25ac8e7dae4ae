"""ValidatingAdmissionPolicies: their expressions, and the decisions these lead to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from steersman.api.cel.policy_expressions import (
    ANNOTATION,
    CONDITION,
    MESSAGE,
    Compiled,
    Composition,
    policy_environment,
)
from steersman.api.cel.runtime.values import EvaluationError
from steersman.api.errors import ApiError, Cause
from steersman.api.generated.admissionregistration_v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    Validation,
)
from steersman.server.admission.expressions import (
    PLAIN,
    ConditionsFailed,
    Evaluator,
    OutOfBudget,
    Subject,
    compile_conditions,
    match_conditions,
)
from steersman.server.admission.plugin import forbidden_error
from steersman.server.evaluation import Meter, evaluated, evaluation_key
from steersman.server.server import AdmissionAttributes

MAX_MESSAGE = 5 * 1024
"""Bytes of a message that a messageExpression makes."""
FAILURE = "validation.policy.admission.k8s.io/validation_failure"
MAX_ANNOTATION = 10 * 1024
"""Characters of an audit annotation."""
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


class _Refusal(msgspec.Struct, frozen=True):
    policy: str
    binding: str
    message: str
    reason: str = "Invalid"

    def __str__(self) -> str:
        bound = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{bound} denied request: {self.message}"


class Denials:
    """The denials of one request by all policies. The first one is the answer."""

    def __init__(self, warnings: list[str], annotate: Callable[[str, str], None]) -> None:
        """``annotate`` adds an audit annotation to the request."""
        self._warnings = warnings
        self._annotate = annotate
        self._annotations: dict[str, list[str]] = {}
        self._first: _Refusal | None = None

    def misconfigured(
        self,
        policy: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding | None,
        why: str,
    ) -> None:
        """A policy or binding cannot be used: denied, unless its failures are ignored."""
        if policy.spec.failurePolicy == "Ignore":
            return
        what, name = ("policy", "") if binding is None else ("binding", binding.metadata.name)
        self._add(_Refusal(policy.metadata.name, name, f"failed to configure {what}: {why}"))

    def add(
        self,
        policy: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding,
        decisions: Decisions,
    ) -> None:
        """Adds the decisions of a policy as a denial, a warning or an audit annotation, as the binding says."""
        name = binding.metadata.name
        for denial in decisions.denials:
            for action in ("Deny",) if denial.always else binding.spec.validationActions:
                if action == "Deny":
                    reason = denial.reason or "Invalid"
                    self._add(_Refusal(policy.metadata.name, name, denial.message, reason))
                elif action == "Warn":
                    self._warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.metadata.name}' with binding "
                        f"'{name}': {denial.message}"
                    )
                elif action == "Audit":
                    self._annotate(FAILURE, _failure(binding, denial))
        for key, value in decisions.annotations.items():
            text = value.strip() if isinstance(value, str) else ""
            values = self._annotations.setdefault(f"{policy.metadata.name}/{key}", []) if text else []
            # Bindings whose parameters make the same of it are one.
            if (limited := text[:MAX_ANNOTATION]) not in values:
                values.append(limited)

    def _add(self, denial: _Refusal) -> None:
        self._first = self._first or denial

    def refuse(self, request: AdmissionAttributes) -> None:
        """Publishes the audit annotations, and raises the refusal of the request, if it was denied."""
        for key, values in self._annotations.items():
            self._annotate(key, ", ".join(values))
        first = self._first
        if first is None:
            return
        error = forbidden_error(request, str(first))
        assert isinstance(error, ApiError)
        raise ApiError(
            error.message,
            code=_CODES.get(first.reason, 422),
            reason=first.reason,
            causes=(Cause("", str(first), ""),),
            details=error.details,
        )


def _failure(binding: ValidatingAdmissionPolicyBinding, denial: Denial) -> str:
    """The audit annotation of a validation that failed."""
    made = {
        "message": denial.message,
        "policy": binding.spec.policyName,
        "binding": binding.metadata.name,
        "expressionIndex": denial.number,
        "validationActions": binding.spec.validationActions,
    }
    return msgspec.json.encode([made]).decode()


class Denial(msgspec.Struct, frozen=True):
    """A validation that failed, or that has no value."""

    message: str
    reason: str = ""
    number: int = 0
    """Its place among the validations of the policy."""
    always: bool = False
    """Whether it denies whatever the actions of the binding are."""


class Decisions(msgspec.Struct, frozen=True):
    """The decisions of a policy about a request: denials and audit annotations."""

    denials: list[Denial]
    annotations: dict[str, Any]
    """The values of its audit annotations, by their keys."""


class CompiledValidation(msgspec.Struct, frozen=True):
    """The expressions of a policy."""

    conditions: tuple[Compiled, ...]
    variables: tuple[Compiled, ...]
    validations: tuple[tuple[Validation, Compiled, Compiled | None], ...]
    """The validations with their expressions and message expressions."""
    annotations: tuple[tuple[str, Compiled], ...]
    ignores_failure: bool

    def decide(self, subject: Subject) -> Decisions:
        """Evaluates the policy for one binding and parameter. Raises `EvaluationNeeded` where that takes long."""
        values = subject.values()
        return evaluated(
            lambda meter: self._decide(values, meter),
            lambda: evaluation_key("validations", id(self), values[:PLAIN]),
        )

    def _decide(self, values: Sequence[Any], meter: Meter) -> Decisions:
        found = Decisions([], {})

        def failed(message: str, *, always: bool = False) -> Decisions:
            if not self.ignores_failure:
                found.denials.append(Denial(message, always=always))
            return found

        try:
            if not match_conditions(self.conditions, values, meter, ignore_failure=self.ignores_failure):
                return found
        except ConditionsFailed as error:
            return failed(str(error))
        evaluator = Evaluator(values, meter, self.variables)
        results: list[tuple[int, Validation, Any, str, Compiled | None]] = []
        try:
            for number, (validation, expression, message) in enumerate(self.validations):
                try:
                    results.append((number, validation, evaluator.evaluate(expression), "", message))
                except EvaluationError as error:
                    results.append((number, validation, None, str(error), message))
        except OutOfBudget as error:
            return failed(str(error))
        for number, validation, value, problem, message in results:
            if problem:
                if not self.ignores_failure:
                    found.denials.append(Denial(problem, number=number))
            elif value is not True:
                text = self._message(validation, message, evaluator)
                found.denials.append(Denial(text, validation.reason or "", number))
        if self.annotations:
            evaluator = Evaluator(values, meter, self.variables)
            try:
                for key, expression in self.annotations:
                    try:
                        found.annotations[key] = evaluator.evaluate(expression)
                    except EvaluationError as error:
                        failed(str(error), always=True)
            except OutOfBudget as error:
                failed(str(error))
        return found

    def _message(self, validation: Validation, expression: Compiled | None, evaluator: Evaluator) -> str:
        text: Any = ""
        if expression is not None:
            try:
                text = evaluator.evaluate(expression)
            except (EvaluationError, OutOfBudget):
                text = ""
        text = text.strip() if isinstance(text, str) else ""
        if "\n" in text or len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
            text = ""
        return text or validation.message.strip() or f"failed expression: {validation.expression.strip()}"


def compile_validation(policy: ValidatingAdmissionPolicy) -> CompiledValidation:
    """Compiles the expressions of a policy."""
    spec = policy.spec
    params = spec.paramKind is not None
    environment = policy_environment(params=params, authorizer=True)
    messages = policy_environment(params=params, authorizer=False)
    composition = Composition(declares=bool(spec.variables))
    for variable in spec.variables:
        composition.declare(variable.name, variable.expression, environment)
    return CompiledValidation(
        compile_conditions(spec.matchConditions, params=params),
        tuple(composition.variables),
        tuple(
            (
                each,
                composition.compile(each.expression, environment, CONDITION),
                composition.compile(each.messageExpression, messages, MESSAGE)
                if each.messageExpression
                else None,
            )
            for each in spec.validations
        ),
        tuple(
            (each.key, composition.compile(each.valueExpression.strip(), environment, ANNOTATION))
            for each in spec.auditAnnotations
        ),
        spec.failurePolicy == "Ignore",
    )
