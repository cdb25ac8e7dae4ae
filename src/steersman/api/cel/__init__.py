"""Type checker and evaluator for the Common Expression Language (CEL), as the Kubernetes 1.36 API server configures it.

`check` returns the type of an expression in an `Environment`, or raises a `CelError` with all errors::

    environment = Environment().with_variables(replicas=INT)
    check("replicas > 1", environment)     # BOOL
    check("replicas > 'a'", environment)   # CelError: found no matching overload for '_>_' applied to '(int, string)'

`program` compiles expressions to Python closures, which are evaluated within a budget; `runtime` has the values and the
functions. `evaluator` evaluates expressions that are only parsed, as the scheduler does with selectors of devices. `schemas`
derives types from OpenAPI schemas; `policies` has the environments of admission policies.
"""

from __future__ import annotations

from steersman.api.cel.checker import check
from steersman.api.cel.environment import Environment, Structs
from steersman.api.cel.errors import CelError, Problem
from steersman.api.cel.parser import parse
from steersman.api.cel.types import Type

__all__ = ["CelError", "Environment", "Problem", "Structs", "Type", "check", "parse"]
