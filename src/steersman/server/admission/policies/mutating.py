"""MutatingAdmissionPolicies: JSON patches and apply configurations that expressions make, and which are made a second time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.cel.policy_expressions import (
    APPLY_CONFIGURATION,
    JSON_PATCHES,
    OBJECT,
    Compiled,
    Composition,
    policy_environment,
)
from steersman.api.cel.runtime.conversions import to_string
from steersman.api.cel.runtime.values import (
    Duration,
    EvaluationError,
    Optional,
    StructValue,
    Timestamp,
    Uint,
    type_name,
)
from steersman.api.errors import ApiError, Cause
from steersman.api.generated.admissionregistration_v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    Mutation,
)
from steersman.api.go_quote import quote
from steersman.api.patch import PatchError, PatchTestFailed, TooManyOperations
from steersman.api.patch import json as json_patch
from steersman.server import status_errors
from steersman.server.admission.expressions import (
    PLAIN,
    ConditionsFailed,
    Evaluator,
    OutOfBudget,
    Subject,
    compile_conditions,
    match_conditions,
)
from steersman.server.admission.plugin import Listers, forbidden_error
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.merge import merge
from steersman.server.apply.schema import List, Map, SchemaError, TypedSchema, deduce
from steersman.server.apply.structs import typed_schema_of
from steersman.server.apply.validate import validate
from steersman.server.codec import field_validation
from steersman.server.codec.convert import CODECS
from steersman.server.evaluation import evaluated, evaluation_key
from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes


class MutationFailed(Exception):
    """A mutation could not be made. The failurePolicy of its policy decides."""


class CompiledMutation(msgspec.Struct, frozen=True):
    """The expressions of a policy."""

    conditions: tuple[Compiled, ...]
    variables: tuple[Compiled, ...]
    mutations: tuple[tuple[Mutation, Compiled], ...]

    def matches(self, subject: Subject, ignores_failure: bool) -> bool:
        """Whether the match conditions hold. Raises `ConditionsFailed`, or `EvaluationNeeded`."""
        conditions = self.conditions
        if not conditions:
            return True
        values = subject.values()
        return evaluated(
            lambda meter: match_conditions(conditions, values, meter, ignore_failure=ignores_failure),
            lambda: evaluation_key("conditions", id(conditions), values[:PLAIN]),
        )

    def value(self, expression: Compiled, subject: Subject) -> Any:
        """The value of a mutation's expression. Raises `EvaluationError`, `OutOfBudget` or `EvaluationNeeded`."""
        values = subject.values()
        return evaluated(
            lambda meter: Evaluator(values, meter, self.variables).evaluate(expression),
            lambda: evaluation_key("mutation", id(expression), values[:PLAIN]),
        )


class Invocation(msgspec.Struct, frozen=True):
    """One evaluation of a policy: for a binding, a parameter, and the version that its rules match."""

    policy: MutatingAdmissionPolicy
    binding: MutatingAdmissionPolicyBinding
    param: Any
    matched: Resource
    evaluator: CompiledMutation

    @property
    def key(self) -> tuple[str, str, str]:
        """The key that finds it again in the second round: the names of policy, binding and parameter."""
        meta = (self.param or {}).get("metadata") or {}
        param = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        return self.policy.metadata.name, self.binding.metadata.name, param


class Mutations:
    """The mutations of one request, in up to two rounds, as upstream reinvokes them."""

    def __init__(self) -> None:
        self.changed = False
        """Whether a policy has changed the object, so that all plugins and policies run again."""
        self.rounds = 0
        """How often policies were evaluated."""
        self._last: Any = None
        self._invoked: list[tuple[str, str, str]] = []
        self._again: set[tuple[str, str, str]] = set()
        self._errors: list[str] = []

    def begin(self, obj: Any) -> None:
        """A round begins with an object."""
        self.rounds += 1
        if self.rounds > 1 and obj != self._last:
            self._require()

    def end(self, obj: Any) -> None:
        self._last = obj

    def _require(self) -> None:
        self._again.update(self._invoked)
        self._invoked.clear()

    def misconfigured(
        self, policy: MutatingAdmissionPolicy, binding: MutatingAdmissionPolicyBinding | None, why: str
    ) -> None:
        """A policy or binding cannot be used: denied, unless its failures are ignored."""
        what = "policy" if binding is None else "binding"
        self._failed(policy, binding, f"failed to configure {what}: {why}")

    def _failed(
        self, policy: MutatingAdmissionPolicy, binding: MutatingAdmissionPolicyBinding | None, why: str
    ) -> None:
        if policy.spec.failurePolicy == "Ignore":
            return
        name = policy.metadata.name
        if binding is None:
            self._errors.append(f"policy {quote(name)} denied request: {why}")
        else:
            self._errors.append(
                f"policy '{name}' with binding '{binding.metadata.name}' denied request: {why}"
            )

    def refuse(self, request: AdmissionAttributes) -> None:
        """Raises the refusal of the request, if a policy failed."""
        if not self._errors:
            return
        error = forbidden_error(request, "")
        assert isinstance(error, ApiError)
        raise ApiError(
            self._errors[0],
            code=403,
            reason="Invalid" if "failed to configure" not in self._errors[0] else "Forbidden",
            causes=tuple(Cause("", text, "") for text in self._errors),
            details=error.details,
        )

    def invoke(self, invocation: Invocation, request: AdmissionAttributes, listers: Listers) -> Any:
        """The object after one policy."""
        policy, binding, evaluator = invocation.policy, invocation.binding, invocation.evaluator
        obj = request.obj
        ignores = policy.spec.failurePolicy == "Ignore"

        def subject(current: Any) -> Subject:
            return Subject(
                replace(request, obj=current), invocation.matched, listers, params=invocation.param
            )

        try:
            if not evaluator.matches(subject(obj), ignores):
                return obj
        except ConditionsFailed as error:
            self._failed(policy, binding, str(error))
            return obj
        if self.rounds > 1 and invocation.key not in self._again:
            return obj
        made = obj
        for mutation, expression in evaluator.mutations:
            try:
                made = _mutated(mutation, expression, evaluator, subject(made), invocation.matched)
            except MutationFailed as failure:
                self._failed(policy, binding, str(failure))
        if made is not obj and made != obj:
            self._require()
            self.changed = True
        if policy.spec.reinvocationPolicy == "IfNeeded":
            self._invoked.append(invocation.key)
        return made


def _mutated(
    mutation: Mutation, expression: Compiled, compiled: CompiledMutation, subject: Subject, matched: Resource
) -> Any:
    """The object of a subject after one mutation. Raises `MutationFailed`."""
    try:
        value = compiled.value(expression, subject)
    except (EvaluationError, OutOfBudget) as error:
        raise MutationFailed(str(error)) from None
    request, form = subject.request, subject.form
    document = form.document(request.obj, request)
    if mutation.patchType == "JSONPatch":
        try:
            changed = json_patch.apply(document, [_operation(each) for each in value])
        except TooManyOperations as error:
            raise MutationFailed(f"JSON Patch: {error}") from None
        except PatchTestFailed:
            return request.obj
        except PatchError as error:
            raise MutationFailed(f"JSON Patch: {error}") from None
        _check_fields(changed, form.type)
    else:
        _check_type_names(value)
        if request.operation == "CONNECT":
            # Options are no objects of the API: upstream has no schema of them.
            shown = f"{form.kind.group}/{form.kind.version}, Kind={form.kind.kind}"
            raise MutationFailed(
                f"error applying patch: failed to convert patch object to typed object: no corresponding type for {shown}"
            )
        applied = {**_plain(value), "apiVersion": document["apiVersion"], "kind": document["kind"]}
        changed = _merged(document, applied, field_manager_for(matched).resource_schema.schema)
    return form.read(changed, request)


# -- patches ----------------------------------------------------------------------------------


def _check_fields(document: Any, type_: type[Any]) -> None:
    """Refuses a patched object with fields that its type does not have, whatever the failurePolicy."""
    if type_ in CODECS:
        return
    unknown = field_validation.unknown_fields(document, typed_schema_of(type_))
    if unknown:
        raise status_errors.internal(field_validation.strict_decoding_error(unknown))


def _operation(value: Mapping[str, Any]) -> dict[str, Any]:
    made = {"op": value.get("op", ""), "path": value.get("path", "")}
    if value.get("from"):
        made["from"] = value["from"]
    if "value" in value:
        if isinstance(value["value"], StructValue):
            _check_type_names(value["value"], root=value["value"].cel_type)
        made["value"] = _plain(value["value"])
    return made


def _plain(value: Any) -> Any:
    """A value of CEL as plain JSON."""
    match value:
        case Optional():
            return _plain(value.value) if value.present else None
        case Mapping():
            return {
                name: _plain(each)
                for name, each in value.items()
                if not (isinstance(each, Optional) and not each.present)
            }
        case list() | tuple():
            return [_plain(each) for each in value]
        case Uint():
            return int(value)
        case Timestamp() | Duration():
            return to_string(value)
        case bytes():
            from base64 import b64encode

            return b64encode(value).decode()
        case None | bool() | int() | float() | str():
            return value
    raise MutationFailed(
        f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {type_name(value)}"
    )


def _check_type_names(value: Any, root: str = OBJECT.name) -> None:
    problems = list(_type_problems(value, root))
    if problems:
        raise MutationFailed("type mismatch: " + "\n".join(problems))


def _type_problems(value: Any, path: str) -> Iterator[str]:
    """The structs whose type names are not those of the fields they stand in."""
    if isinstance(value, StructValue):
        if value.cel_type != path:
            yield (
                f"unexpected type name {quote(value.cel_type)}, expected {quote(path)}, which matches field name path from "
                "root Object type"
            )
        for name, each in value.items():
            yield from _type_problems(each, f"{path}.{name}")
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _type_problems(each, path)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _type_problems(each, path)


def _merged(document: dict[str, Any], applied: dict[str, Any], schema: TypedSchema) -> Any:
    try:
        validate(applied, schema)
    except SchemaError as error:
        raise MutationFailed(
            f"error applying patch: failed to convert patch object to typed object: {error}"
        ) from None
    atomics = list(_atomics(applied, schema, ""))
    if atomics:
        raise MutationFailed(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            + ", ".join(atomics)
        )
    try:
        return merge(document, applied, schema)
    except SchemaError as error:
        raise MutationFailed(f"error applying patch: failed to merge patch: {error}") from None


def _atomics(value: Any, schema: TypedSchema, path: str) -> Iterator[str]:
    """The paths of atomic lists, maps and structs in an apply configuration."""
    typed = deduce(schema, value)
    if isinstance(typed, Map) and isinstance(value, Mapping):
        if typed.atomic:
            yield path
        for name, each in value.items():
            if typed.declares(name):
                yield from _atomics(each, typed.at(name), f"{path}.{name}")
    elif isinstance(typed, List) and isinstance(value, list):
        if typed.atomic:
            yield path
        for index, each in enumerate(value):
            yield from _atomics(each, typed.item, f"{path}[{index}]")


def compile_mutation(policy: MutatingAdmissionPolicy) -> CompiledMutation:
    """Compiles the expressions of a policy."""
    spec = policy.spec
    params = spec.paramKind is not None
    environment = policy_environment(params=params, authorizer=True)
    patches = policy_environment(params=params, authorizer=True, patches=True)
    composition = Composition()
    for variable in spec.variables:
        composition.declare(variable.name, variable.expression, environment)
    mutations = []
    for mutation in spec.mutations:
        if mutation.patchType == "JSONPatch":
            source = mutation.jsonPatch.expression if mutation.jsonPatch is not None else ""
            returns = JSON_PATCHES
        else:
            source = mutation.applyConfiguration.expression if mutation.applyConfiguration is not None else ""
            returns = APPLY_CONFIGURATION
        mutations.append((mutation, composition.compile(source.strip(), patches, returns)))
    return CompiledMutation(
        compile_conditions(spec.matchConditions, params=params),
        tuple(composition.variables),
        tuple(mutations),
    )
