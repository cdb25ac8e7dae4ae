"""The reviews of authorization.k8s.io: may somebody, may I, and what may I.

Each takes the document that was sent and gives back the one to answer with.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from steersman.api.generated.authorization_v1 import (
    LocalSubjectAccessReview,
    NonResourceAttributes,
    NonResourceRule,
    ResourceAttributes,
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, Authorizes
from steersman.server.auth.rbac import Authorizer
from steersman.server.auth.selector_restrictions import evaluation_errors, restriction_problems
from steersman.server.auth.users import User
from steersman.server.status_errors import FieldError, bad_request, field_invalid

GROUP = "authorization.k8s.io"

R = TypeVar("R", SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview)


def subject_access_review(body: SubjectAccessReview, authorizer: Authorizes) -> SubjectAccessReview:
    """May this user do that? Raises `Invalid`."""
    _refuse(_subject_problems(body.spec), _metadata_problems(body.metadata, "must be empty"))
    return _reviewed(body, _subject(body.spec), body.spec, authorizer)


def local_subject_access_review(
    body: LocalSubjectAccessReview, namespace: str, authorizer: Authorizes
) -> LocalSubjectAccessReview:
    """May this user do that in the namespace of the request? Raises `Invalid` or `BadRequest`."""
    if body.metadata.namespace not in ("", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata = msgspec.structs.replace(body.metadata, namespace=namespace)
    body = msgspec.structs.replace(body, metadata=metadata)
    resource, other = body.spec.resourceAttributes, body.spec.nonResourceAttributes
    found = _subject_problems(body.spec)
    if msgspec.structs.replace(metadata, namespace="", managedFields=()) != ObjectMeta():
        found.append(field_invalid("metadata", metadata, "must be empty except for namespace"))
    if resource is not None and resource.namespace != namespace:
        where = "spec.resourceAttributes.namespace"
        found.append(field_invalid(where, resource.namespace, "must match metadata.namespace"))
    if other is not None:
        where, why = "spec.nonResourceAttributes", "disallowed on this kind of request"
        found.append(field_invalid(where, _printed(other), why))
    _refuse(found)
    return _reviewed(body, _subject(body.spec), body.spec, authorizer)


def self_subject_access_review(
    body: SelfSubjectAccessReview, user: User, authorizer: Authorizes
) -> SelfSubjectAccessReview:
    """May I do that? Raises `Invalid`."""
    _refuse(_spec_problems(body.spec), _metadata_problems(body.metadata, "must be empty"))
    return _reviewed(body, user, body.spec, authorizer)


def self_subject_rules_review(
    body: SelfSubjectRulesReview, user: User, authorizer: Authorizer
) -> SelfSubjectRulesReview:
    """What may I do in a namespace? Raises `BadRequest` where none is named."""
    if not body.spec.namespace:
        raise bad_request("no namespace on request")
    held = authorizer.holdings(user, body.spec.namespace)
    rules = held.rules
    # Upstream does not say again what was asked.
    return SelfSubjectRulesReview(
        status=SubjectRulesReviewStatus(
            resourceRules=tuple(
                ResourceRule(
                    verbs=rule.verbs,
                    apiGroups=rule.apiGroups,
                    resources=rule.resources,
                    resourceNames=rule.resourceNames,
                )
                for rule in rules
                if rule.resources
            ),
            nonResourceRules=tuple(
                NonResourceRule(verbs=rule.verbs, nonResourceURLs=rule.nonResourceURLs)
                for rule in rules
                if rule.nonResourceURLs
            ),
            evaluationError=held.errors(),
        )
    )


# -- answering --------------------------------------------------------------------------------


def _reviewed(
    body: R, user: User, spec: SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec, authorizer: Authorizes
) -> R:
    decision = authorizer.authorize(_attributes(user, spec))
    status = SubjectAccessReviewStatus(
        allowed=decision.allowed,
        reason=decision.reason,
        evaluationError="; ".join(evaluation_errors(spec.resourceAttributes)),
    )
    return msgspec.structs.replace(body, status=status)


def _subject(spec: SubjectAccessReviewSpec) -> User:
    extra = {key: values or () for key, values in spec.extra.items()}
    return User(spec.user, spec.uid, spec.groups, extra)


def _attributes(user: User, spec: SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec) -> Attributes:
    asked = spec.resourceAttributes
    if asked is None:
        other = spec.nonResourceAttributes or NonResourceAttributes()
        return Attributes(user, other.verb, path=other.path)
    return Attributes(
        user, asked.verb, asked.group, asked.resource, asked.subresource, asked.namespace, asked.name
    )


# -- validation -------------------------------------------------------------------------------


def _subject_problems(spec: SubjectAccessReviewSpec) -> list[FieldError]:
    found = _both_or_neither(spec.resourceAttributes, spec.nonResourceAttributes)
    if not spec.user and not spec.groups:
        found.append(field_invalid("spec.user", spec.user, "at least one of user or group must be specified"))
    return found + restriction_problems(spec.resourceAttributes)


def _spec_problems(spec: SelfSubjectAccessReviewSpec) -> list[FieldError]:
    found = _both_or_neither(spec.resourceAttributes, spec.nonResourceAttributes)
    return found + restriction_problems(spec.resourceAttributes)


def _both_or_neither(
    resource: ResourceAttributes | None, other: NonResourceAttributes | None
) -> list[FieldError]:
    if resource is not None and other is not None:
        why = "cannot be specified in combination with resourceAttributes"
        return [field_invalid("spec.nonResourceAttributes", _printed(other), why)]
    if resource is None and other is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_invalid("spec.resourceAttributes", None, why)]
    return []


def _metadata_problems(metadata: ObjectMeta, why: str) -> list[FieldError]:
    if msgspec.structs.replace(metadata, managedFields=()) == ObjectMeta():
        return []
    return [field_invalid("metadata", metadata, why)]


def _printed(other: NonResourceAttributes) -> dict[str, str]:
    """As upstream's own type is printed, which is not the one on the wire."""
    return {"Path": other.path, "Verb": other.verb}


def _refuse(*found: list[FieldError]) -> None:
    every = [problem for some in found for problem in some]
    if every:
        # Upstream has lost the kind by the time it refuses.
        raise status_errors.invalid(GROUP, "", "", every)
