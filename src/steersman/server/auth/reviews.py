"""The review APIs of authorization.k8s.io and authentication.k8s.io.

Each function takes the document of a request and returns the one to answer with.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec

from steersman.api.generated.authentication_v1 import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
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
from steersman.api.jwt import InvalidCredential
from steersman.server import status_errors
from steersman.server.auth.attributes import Attributes, Authorizer, aggregate
from steersman.server.auth.authentication import Authenticator, Credentials
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.auth.selector_restrictions import evaluation_errors, validate_restrictions
from steersman.server.auth.users import User
from steersman.server.status_errors import FieldError, bad_request, field_invalid

GROUP = "authorization.k8s.io"

R = TypeVar("R", SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview)


def subject_access_review(body: SubjectAccessReview, authorizer: Authorizer) -> SubjectAccessReview:
    """Answers a SubjectAccessReview. Raises `Invalid`."""
    _raise_if_invalid(_validate_subject_spec(body.spec), _validate_metadata(body.metadata, "must be empty"))
    return _with_decision(body, _subject(body.spec), body.spec, authorizer)


def local_subject_access_review(
    body: LocalSubjectAccessReview, namespace: str, authorizer: Authorizer
) -> LocalSubjectAccessReview:
    """Answers a LocalSubjectAccessReview in the namespace of the request. Raises `Invalid` or `BadRequest`."""
    if body.metadata.namespace not in ("", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata = msgspec.structs.replace(body.metadata, namespace=namespace)
    body = msgspec.structs.replace(body, metadata=metadata)
    resource, other = body.spec.resourceAttributes, body.spec.nonResourceAttributes
    errors = _validate_subject_spec(body.spec)
    if msgspec.structs.replace(metadata, namespace="", managedFields=()) != ObjectMeta():
        errors.append(field_invalid("metadata", metadata, "must be empty except for namespace"))
    if resource is not None and resource.namespace != namespace:
        where = "spec.resourceAttributes.namespace"
        errors.append(field_invalid(where, resource.namespace, "must match metadata.namespace"))
    if other is not None:
        where, detail = "spec.nonResourceAttributes", "disallowed on this kind of request"
        errors.append(field_invalid(where, _go_attributes(other), detail))
    _raise_if_invalid(errors)
    return _with_decision(body, _subject(body.spec), body.spec, authorizer)


def self_subject_access_review(
    body: SelfSubjectAccessReview, user: User, authorizer: Authorizer
) -> SelfSubjectAccessReview:
    """Answers a SelfSubjectAccessReview. Raises `Invalid`."""
    _raise_if_invalid(_validate_self_spec(body.spec), _validate_metadata(body.metadata, "must be empty"))
    return _with_decision(body, user, body.spec, authorizer)


def self_subject_rules_review(
    body: SelfSubjectRulesReview, user: User, authorizer: RBACAuthorizer
) -> SelfSubjectRulesReview:
    """Answers a SelfSubjectRulesReview. Raises `BadRequest` if it has no namespace."""
    if not body.spec.namespace:
        raise bad_request("no namespace on request")
    held = authorizer.rules_for(user, body.spec.namespace)
    rules = held.rules
    # Upstream omits the spec in its answer.
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


# -- decisions --------------------------------------------------------------------------------


def _with_decision(
    body: R, user: User, spec: SubjectAccessReviewSpec | SelfSubjectAccessReviewSpec, authorizer: Authorizer
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
    attributes = spec.resourceAttributes
    if attributes is None:
        other = spec.nonResourceAttributes or NonResourceAttributes()
        return Attributes(user, other.verb, path=other.path)
    return Attributes(
        user,
        attributes.verb,
        attributes.group,
        attributes.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
    )


# -- validation -------------------------------------------------------------------------------


def _validate_subject_spec(spec: SubjectAccessReviewSpec) -> list[FieldError]:
    errors = _validate_one_of(spec.resourceAttributes, spec.nonResourceAttributes)
    if not spec.user and not spec.groups:
        errors.append(
            field_invalid("spec.user", spec.user, "at least one of user or group must be specified")
        )
    return errors + validate_restrictions(spec.resourceAttributes)


def _validate_self_spec(spec: SelfSubjectAccessReviewSpec) -> list[FieldError]:
    errors = _validate_one_of(spec.resourceAttributes, spec.nonResourceAttributes)
    return errors + validate_restrictions(spec.resourceAttributes)


def _validate_one_of(
    resource: ResourceAttributes | None, other: NonResourceAttributes | None
) -> list[FieldError]:
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [field_invalid("spec.nonResourceAttributes", _go_attributes(other), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_invalid("spec.resourceAttributes", None, detail)]
    return []


def _validate_metadata(metadata: ObjectMeta, detail: str) -> list[FieldError]:
    if msgspec.structs.replace(metadata, managedFields=()) == ObjectMeta():
        return []
    return [field_invalid("metadata", metadata, detail)]


def _go_attributes(other: NonResourceAttributes) -> dict[str, str]:
    """Non-resource attributes with the field names of upstream's internal type, which messages print."""
    return {"Path": other.path, "Verb": other.verb}


def _raise_if_invalid(*errors: list[FieldError]) -> None:
    every = [problem for some in errors for problem in some]
    if every:
        # Upstream omits the kind.
        raise status_errors.invalid(GROUP, "", "", every)


# -- TokenReview and SelfSubjectReview -------------------------------------------------------


def token_review(body: TokenReview, authenticator: Authenticator, now: datetime) -> TokenReview:
    """Answers a TokenReview. Raises `BadRequest` if it has no token."""
    if not body.spec.token:
        raise bad_request("token is required for TokenReview in authentication")
    credentials = Credentials(authorization=f"Bearer {body.spec.token}")
    try:
        errors = authenticator.authenticate_for(credentials, now, body.spec.audiences)
    except InvalidCredential as error:
        # Upstream first tries the loopback token, whose error comes first.
        status = TokenReviewStatus(error=aggregate(("invalid bearer token", *error.errors)))
    else:
        status = TokenReviewStatus(
            authenticated=True, user=user_info(errors.user), audiences=errors.audiences
        )
    return msgspec.structs.replace(body, status=status)


def self_subject_review(user: User, now: datetime) -> SelfSubjectReview:
    """Answers a SelfSubjectReview."""
    return SelfSubjectReview(
        metadata=ObjectMeta(creationTimestamp=now.replace(microsecond=0)),
        status=SelfSubjectReviewStatus(userInfo=user_info(user)),
    )


def user_info(user: User) -> UserInfo:
    """A user as the API's UserInfo."""
    return UserInfo(username=user.name, uid=user.uid, groups=user.groups, extra=user.extra)
