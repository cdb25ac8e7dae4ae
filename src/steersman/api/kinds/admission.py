"""Views of ValidatingAdmissionPolicies."""

from __future__ import annotations

from steersman.api.kinds import Object, Struct
from steersman.api.scheme import Kind, register


class Rule(Struct, frozen=True):
    """The resources that a rule matches."""

    apiGroups: tuple[str, ...] = ()
    apiVersions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class MatchResources(Struct, frozen=True):
    resourceRules: tuple[Rule, ...] = ()


class ParamKind(Struct, frozen=True):
    apiVersion: str = ""
    kind: str = ""


class Validation(Struct, frozen=True):
    expression: str = ""
    messageExpression: str = ""


class Variable(Struct, frozen=True):
    name: str = ""
    expression: str = ""


class ValidatingAdmissionPolicySpec(Struct, frozen=True):
    matchConstraints: MatchResources | None = None
    paramKind: ParamKind | None = None
    validations: tuple[Validation, ...] = ()
    variables: tuple[Variable, ...] = ()


class ValidatingAdmissionPolicyStatus(Struct, frozen=True):
    observedGeneration: int = 0


class ValidatingAdmissionPolicy(Object, frozen=True):
    spec: ValidatingAdmissionPolicySpec = ValidatingAdmissionPolicySpec()
    status: ValidatingAdmissionPolicyStatus = ValidatingAdmissionPolicyStatus()


VALIDATINGADMISSIONPOLICIES = register(
    Kind(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        False,
        ValidatingAdmissionPolicy,
    )
)
