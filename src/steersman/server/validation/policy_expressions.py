"""Validation of the CEL expressions of admission policies: their types, as kube-apiserver checks them on a write.

The objects of a policy may be of any kind here; the validatingadmissionpolicy-status controller checks expressions against
the kinds that a policy matches.
"""

from __future__ import annotations

from steersman.api.cel.policy_expressions import (
    ANNOTATION,
    APPLY_CONFIGURATION,
    CONDITION,
    JSON_PATCHES,
    MESSAGE,
    Composition,
    policy_environment,
)
from steersman.api.cel.types import Type
from steersman.server.validation.field_errors import FieldErrors


class Expressions:
    """The expressions of one policy, in the order they are validated: each may use the variables before it."""

    def __init__(self, *, params: bool, variables: bool) -> None:
        self._params = params
        self._composition = Composition(declares=variables)

    def variable(self, errors: FieldErrors, path: str, name: str, source: str) -> None:
        """Validates a variable and declares it."""
        environment = policy_environment(params=self._params, authorizer=True)
        compiled = self._composition.declare(name, source, environment)
        if compiled.error:
            errors.invalid(path, source, compiled.error)

    def condition(self, errors: FieldErrors, path: str, source: str) -> None:
        """Validates the expression of a validation."""
        self._validate(errors, path, source, source, CONDITION)

    def message(self, errors: FieldErrors, path: str, source: str) -> None:
        """Validates a messageExpression, which has no authorizer."""
        self._validate(errors, path, source, source, MESSAGE, authorizer=False)

    def annotation(self, errors: FieldErrors, path: str, source: str) -> None:
        """Validates the valueExpression of an audit annotation."""
        self._validate(errors, path, source, source.strip(), ANNOTATION)

    def mutation(self, errors: FieldErrors, path: str, patch_type: str, source: str) -> None:
        """Validates the expression of a mutation."""
        trimmed = source.strip()
        if not trimmed:
            errors.required(path)
            return
        returns = JSON_PATCHES if patch_type == "JSONPatch" else APPLY_CONFIGURATION
        self._validate(errors, path, trimmed, trimmed, returns, patches=True)

    def _validate(
        self,
        errors: FieldErrors,
        path: str,
        shown: str,
        source: str,
        returns: tuple[Type, ...],
        *,
        authorizer: bool = True,
        patches: bool = False,
    ) -> None:
        environment = policy_environment(params=self._params, authorizer=authorizer, patches=patches)
        wrong = self._composition.compile(source, environment, returns).error
        if wrong:
            errors.invalid(path, shown, wrong)
