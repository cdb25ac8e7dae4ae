"""Type-checks the expressions of ValidatingAdmissionPolicies against the kinds they match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from steersman.api.cel.checker import check
from steersman.api.cel.environment import Environment, Structs
from steersman.api.cel.errors import CelError
from steersman.api.cel.libraries import AUTHORIZER
from steersman.api.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Sort, Type, list_of, map_of, struct

_VARIABLES = "kubernetes.variables"
_TEXTS = list_of(STRING)


def _texts(*names: str) -> dict[str, Type]:
    return dict.fromkeys(names, STRING)


_KIND = struct("kubernetes.GroupVersionKind")
_RESOURCE = struct("kubernetes.GroupVersionResource")
_REQUEST: Mapping[str, Mapping[str, Type]] = {
    "kubernetes.GroupVersionKind": _texts("group", "version", "kind"),
    "kubernetes.GroupVersionResource": _texts("group", "version", "resource"),
    "kubernetes.UserInfo": {**_texts("username", "uid"), "groups": _TEXTS, "extra": map_of(STRING, _TEXTS)},
    "kubernetes.AdmissionRequest": {
        **_texts("subResource", "requestSubResource", "name", "namespace", "operation"),
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
}
_NAMESPACE: Mapping[str, Mapping[str, Type]] = {
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceCondition": {
        **_texts("status", "type", "message", "reason"),
        "lastTransitionTime": TIMESTAMP,
    },
    "kubernetes.NamespaceStatus": {
        "conditions": list_of(struct("kubernetes.NamespaceCondition")),
        "phase": STRING,
    },
    "kubernetes.NamespaceMetadata": {
        **_texts("name", "generateName", "namespace", "UID", "resourceVersion"),
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "creationTimestamp": TIMESTAMP,
        "deletionTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "generation": INT,
        "finalizers": _TEXTS,
    },
    "kubernetes.Namespace": {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
}


def environment(structs: Structs, obj: Type, params: Type | None = None) -> Environment:
    """Return the environment of a policy's expressions for objects of one type.

    ``structs`` are those of the objects and the parameters; ``params`` is None for a policy without parameters.
    """
    known = Environment().structs.copy()
    known.include(structs)
    made = [known.add(name, fields) for name, fields in (*_REQUEST.items(), *_NAMESPACE.items())]
    variables = {
        "namespaceObject": struct("kubernetes.Namespace"),
        "request": struct("kubernetes.AdmissionRequest"),
        "object": obj,
        "oldObject": obj,
        "authorizer": AUTHORIZER,
        **({} if params is None else {"params": params}),
    }
    return Environment(structs=known).with_variables(**variables).with_types(*made)


def with_variables(base: Environment, variables: Iterable[tuple[str, str]]) -> Environment:
    """Return the environment with a policy's variables, each of which may refer to those before it.

    An invalid variable has the type `DYN`, so that its uses cause no further errors.
    """
    structs = base.structs.copy()
    fields: dict[str, Type] = {}
    named = Environment(base.variables, structs, base.functions, base.types)
    named = named.with_variables(variables=structs.add(_VARIABLES, fields))
    for name, expression in variables:
        try:
            fields[name] = _plain(check(expression, named))
        except CelError:
            fields[name] = DYN
    return named


def _plain(type_: Type) -> Type:
    """Return the type of a variable as upstream keeps it: structs become `DYN`."""
    match type_.sort:
        case Sort.LIST:
            return list_of(_plain(type_.of[0]))
        case Sort.MAP:
            return map_of(_plain(type_.of[0]), _plain(type_.of[1]))
        case Sort.STRUCT | Sort.OPAQUE | Sort.TYPE | Sort.PARAMETER | Sort.ERROR:
            return DYN
    return type_


@dataclass(frozen=True, slots=True)
class MatchedKind:
    """A kind that a policy matches, and the environment of its expressions."""

    group: str
    version: str
    kind: str
    environment: Environment

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


def warnings(
    expressions: Iterable[tuple[str, str]], matched: Sequence[MatchedKind]
) -> Iterator[tuple[str, str]]:
    """Yield the errors of expressions for any of the matched kinds, with the field of each expression."""
    for field, expression in expressions:
        errors = tuple(filter(None, (_type_error(expression, one) for one in matched)))
        if errors:
            yield field, "\n".join(errors)


def _type_error(expression: str, matched: MatchedKind) -> str:
    try:
        check(expression, matched.environment)
    except CelError as error:
        return f"{matched}: {error}\n"
    return ""
