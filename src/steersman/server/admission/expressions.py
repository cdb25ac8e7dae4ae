"""Expressions on admission requests: the values of their variables, match conditions, and budgets.

`Subject` has the variables of one request for one policy or webhook, each made when an expression first uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from steersman.api.cel.policy_expressions import (
    CONDITION,
    Compiled,
    Composition,
    policy_environment,
)
from steersman.api.cel.program import PER_CALL_LIMIT, Allowance, lazy
from steersman.api.cel.runtime.kubernetes import Authorizer, Check, Decision, ResourceCheck
from steersman.api.cel.runtime.values import EvaluationError
from steersman.api.generated.admissionregistration_v1 import MatchCondition
from steersman.server.admission.forms import (
    AdmissionForm,
    admission_request,
    requested_resource,
    review_namespace,
)
from steersman.server.admission.plugin import Listers
from steersman.server.auth.attributes import Attributes
from steersman.server.auth.users import User, service_account_user
from steersman.server.codec.convert import to_document
from steersman.server.evaluation import Meter, on_loop
from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes

BUDGET = 10_000_000
"""The cost of the expressions of one policy for one binding and parameter (RuntimeCELCostBudget)."""
MATCH_BUDGET = 2_500_000
"""The cost of the match conditions of one webhook or policy (RuntimeCELCostBudgetMatchConditions)."""
_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
PLAIN = 5
"""The values of a subject that are plain data."""
_NAMESPACE_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
)


class OutOfBudget(Exception):
    """The expressions of a policy cost more than they may together."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


class Subject:
    """A request as the expressions of one policy or webhook see it, at the version that its rules match."""

    def __init__(
        self,
        request: AdmissionAttributes,
        matched: Resource,
        listers: Listers,
        *,
        params: Any = None,
        namespaced: bool = True,
    ) -> None:
        self.request = request
        self.form = AdmissionForm.of(request, matched)
        self._matched = matched
        self._listers = listers
        self._params = params
        self._namespaced = namespaced
        """Whether expressions see the object of the namespace; match conditions do not."""

    def values(self) -> list[Any]:
        """The values of the variables, in their order. Those before the authorizer are plain data (`PLAIN`)."""
        request, form = self.request, self.form
        authorizer = Authorizer(self._ask)
        resource = requested_resource(request)
        check = Check(
            group=resource.group,
            resource=resource.plural,
            subresource=request.subresource,
            namespace=review_namespace(request),
            name=request.name,
        )
        return [
            None if request.obj is None else form.document(request.obj, request),
            None if request.old is None else form.document(request.old, request, new=False),
            self._request_document(),
            self._params,
            self._namespace() if self._namespaced else None,
            authorizer,
            ResourceCheck(self._ask, check),
        ]

    def _request_document(self) -> dict[str, Any]:
        request = self.request
        requested = requested_resource(request)
        made = admission_request(
            request,
            self.form.kind,
            self._matched,
            AdmissionForm.of(request, requested).kind,
            requested,
            None,
            None,
        )
        del made["object"], made["oldObject"]
        return made

    def _namespace(self) -> dict[str, Any] | None:
        request = self.request
        if not request.namespace or request.resource.id == "namespaces":
            return None
        found = self._listers.get("namespaces", "", request.namespace)
        if found is None:
            return None
        whole = to_document("v1", "Namespace", found)
        meta = {name: value for name, value in whole["metadata"].items() if name in _NAMESPACE_FIELDS}
        return {**whole, "metadata": meta}

    def _ask(self, check: Check) -> Decision:
        authorizer = self._listers.authorizer
        if authorizer is None:
            return Decision(True)
        user: User = self.request.user
        if check.service_account is not None:
            user = service_account_user(*check.service_account, "")
        attributes = Attributes(
            user,
            check.verb,
            check.group,
            check.resource,
            check.subresource,
            check.namespace,
            check.name,
            check.path,
            # The selector of labels stays out: no authorizer here looks at it.
            check.field_selector,
        )
        found = on_loop(lambda: authorizer.authorize(attributes))
        return Decision(found.allowed, found.reason)


class Evaluator:
    """Evaluates the expressions of one policy on the values of one subject, within a budget."""

    def __init__(
        self,
        values: Sequence[Any],
        meter: Meter,
        variables: Iterable[Compiled] = (),
        budget: int = BUDGET,
    ) -> None:
        self._meter = meter
        allowance = Allowance(meter.left)
        cells = [_variable(each, allowance) for each in variables]
        self._frame = [0, 0, *values, *cells]
        self.budget = budget

    def evaluate(self, compiled: Compiled) -> Any:
        """The value of an expression. Raises `EvaluationError` with upstream's text, `OutOfBudget`, or `TooCostly`."""
        if compiled.program is None:
            raise EvaluationError(f"compilation error: {compiled.error}")
        try:
            value, cost = compiled.program.evaluate_in(self._frame, min(PER_CALL_LIMIT, self._meter.left))
        except EvaluationError as error:
            self._charge(error.cost)
            raise EvaluationError(f"expression '{compiled.source}' resulted in error: {error}") from None
        self._charge(cost)
        return value

    def _charge(self, cost: int) -> None:
        self._meter.spend(cost)
        if cost > self.budget:
            raise OutOfBudget
        self.budget -= cost


class _Broken:
    """A variable that cannot be compiled: its use is an error."""

    def __init__(self, error: str) -> None:
        self._error = error

    def force(self, frame: Any, width: int) -> Any:
        raise EvaluationError(self._error)


def _variable(compiled: Compiled, allowance: Allowance) -> Any:
    if compiled.program is None:
        return _Broken(f'composited variable "{compiled.name}" fails to compile: {compiled.error}')
    return lazy(compiled.name, compiled.program, allowance)


# -- match conditions -------------------------------------------------------------------------


def compile_conditions(conditions: Iterable[MatchCondition], *, params: bool = False) -> tuple[Compiled, ...]:
    """Compiles the match conditions of a webhook, or with ``params`` of a policy that has parameters."""
    environment = policy_environment(params=params, authorizer=True)
    composition = Composition(declares=False)
    return tuple(composition.compile(each.expression.strip(), environment, CONDITION) for each in conditions)


class ConditionsFailed(Exception):
    """Match conditions have no value, and the failurePolicy is Fail."""


def match_conditions(
    conditions: tuple[Compiled, ...], values: Sequence[Any], meter: Meter, *, ignore_failure: bool
) -> bool:
    """Whether all conditions hold for a request. Raises `ConditionsFailed` with upstream's text.

    One that is false decides, whatever the errors of the others.
    """
    if not conditions:
        return True
    evaluator = Evaluator(values, meter, budget=MATCH_BUDGET)
    errors: list[str] = []
    try:
        results: list[Any] = []
        for condition in conditions:
            try:
                results.append(evaluator.evaluate(condition))
            except EvaluationError as error:
                results.append(None)
                errors.append(str(error))
    except OutOfBudget as error:
        if ignore_failure:
            return False
        raise ConditionsFailed(str(error)) from None
    if any(result is False for result in results):
        return False
    if not errors:
        return True
    if ignore_failure:
        return False
    unique = list(dict.fromkeys(errors))
    raise ConditionsFailed(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
