"""ValidatingAdmissionPolicies: their expressions, and the decisions these lead to."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    ConditionsFailed,
    Evaluator,
    OutOfBudget,
    Subject,
    compile_conditions,
    match_conditions,
)
from steersman.server.admission.plugin import forbidden_error
from steersman.server.server import AdmissionAttributes

MAX_MESSAGE = 5 * 1024
"""Bytes of a message that a messageExpression makes."""
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


class _Denial(NamedTuple):
    policy: str
    binding: str
    message: str
    reason: str = "Invalid"

    def __str__(self) -> str:
        bound = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{bound} denied request: {self.message}"


class Denials:
    """The denials of one request by all policies. The first one is the answer."""

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings
        self._first: _Denial | None = None

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
        self._add(_Denial(policy.metadata.name, name, f"failed to configure {what}: {why}"))

    def denied(
        self,
        policy: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding,
        message: str,
        reason: str,
        *,
        always: bool = False,
    ) -> None:
        """A validation failed: denied, or a warning, as the binding says. ``always`` is denied whatever it says."""
        name = binding.metadata.name
        actions = ("Deny",) if always else binding.spec.validationActions
        for action in actions:
            if action == "Deny":
                self._add(_Denial(policy.metadata.name, name, message, reason or "Invalid"))
            elif action == "Warn":
                self._warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.metadata.name}' with binding "
                    f"'{name}': {message}"
                )

    def _add(self, denial: _Denial) -> None:
        self._first = self._first or denial

    def refuse(self, request: AdmissionAttributes) -> None:
        """Raises the refusal of the request, if it was denied."""
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


class CompiledValidation(NamedTuple):
    """The expressions of a policy."""

    conditions: tuple[Compiled, ...]
    variables: tuple[Compiled, ...]
    validations: tuple[tuple[Validation, Compiled, Compiled | None], ...]
    """The validations with their expressions and message expressions."""
    annotations: tuple[tuple[str, Compiled], ...]
    ignores_failure: bool

    def validate(
        self,
        subject: Subject,
        policy: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding,
        denials: Denials,
    ) -> None:
        """Evaluates the policy for one binding and parameter."""

        def failed(message: str) -> None:
            if not self.ignores_failure:
                denials.denied(policy, binding, message, "")

        try:
            if not match_conditions(self.conditions, lambda: subject, ignore_failure=self.ignores_failure):
                return
        except ConditionsFailed as error:
            failed(str(error))
            return
        evaluator = Evaluator(subject, self.variables)
        results: list[tuple[Validation, Any, str, Compiled | None]] = []
        try:
            for validation, expression, message in self.validations:
                try:
                    results.append((validation, evaluator.evaluate(expression), "", message))
                except EvaluationError as error:
                    results.append((validation, None, str(error), message))
        except OutOfBudget as error:
            failed(str(error))
            return
        for validation, value, problem, message in results:
            if problem:
                failed(problem)
            elif value is not True:
                text = self._message(validation, message, evaluator)
                denials.denied(policy, binding, text, validation.reason or "")
        self._annotate(subject, policy, binding, denials)

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

    def _annotate(
        self,
        subject: Subject,
        policy: ValidatingAdmissionPolicy,
        binding: ValidatingAdmissionPolicyBinding,
        denials: Denials,
    ) -> None:
        """Evaluates audit annotations. There is no audit log; one that fails denies, as upstream."""
        if not self.annotations:
            return
        evaluator = Evaluator(subject, self.variables)
        try:
            for _, expression in self.annotations:
                try:
                    evaluator.evaluate(expression)
                except EvaluationError as error:
                    if not self.ignores_failure:
                        denials.denied(policy, binding, str(error), "", always=True)
        except OutOfBudget as error:
            if not self.ignores_failure:
                denials.denied(policy, binding, str(error), "")


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
