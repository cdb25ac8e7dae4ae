"""The reviews of authentication.k8s.io: whose token is this, and who am I."""

from __future__ import annotations

from datetime import datetime

import msgspec

from steersman.api.generated.authentication_v1 import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.jwt import Untrusted
from steersman.server.auth.attributes import aggregate
from steersman.server.auth.authentication import Authenticator, Credentials
from steersman.server.auth.users import User
from steersman.server.status_errors import bad_request


def token_review(body: TokenReview, authenticator: Authenticator, now: datetime) -> TokenReview:
    """Whose token is this, and is it meant for these audiences? Raises `BadRequest` where there is none."""
    if not body.spec.token:
        raise bad_request("token is required for TokenReview in authentication")
    shown = Credentials(authorization=f"Bearer {body.spec.token}")
    try:
        found = authenticator.recognise(shown, now, body.spec.audiences)
    except Untrusted as error:
        # Upstream first holds every token against the one it talks to itself with.
        status = TokenReviewStatus(error=aggregate(("invalid bearer token", *error.errors)))
    else:
        status = TokenReviewStatus(authenticated=True, user=user_info(found.user), audiences=found.audiences)
    return msgspec.structs.replace(body, status=status)


def self_subject_review(user: User, now: datetime) -> SelfSubjectReview:
    """Who am I?"""
    return SelfSubjectReview(
        metadata=ObjectMeta(creationTimestamp=now.replace(microsecond=0)),
        status=SelfSubjectReviewStatus(userInfo=user_info(user)),
    )


def user_info(user: User) -> UserInfo:
    """A user as the API writes one."""
    return UserInfo(username=user.name, uid=user.uid, groups=user.groups, extra=user.extra)
