"""The ServiceAccount token issuer: TokenRequest, and the OpenID discovery documents that verify its tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import msgspec

from steersman.api.generated.authentication_v1 import (
    BoundObjectReference,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
)
from steersman.api.jwt import BoundObjectRef, Claims, KubernetesClaim, encode
from steersman.api.signing_keys import KeySet
from steersman.server import status_errors
from steersman.server.auth.lookup import ObjectGetter
from steersman.server.auth.users import service_account_username

if TYPE_CHECKING:
    from steersman.api.generated.meta_v1 import Object
from collections.abc import Mapping

O = TypeVar("O")

GROUP = "authentication.k8s.io"

_DEFAULT_SECONDS = 60 * 60
_MIN_SECONDS = 10 * 60
_MAX_SECONDS = 1 << 32
_INJECTED_POD_SECONDS = 60 * 60 + 7
"""The expiration that ServiceAccount admission requests for pods, by which those requests are recognized."""
_YEAR_SECONDS = 365 * 24 * 60 * 60


class IssuedToken(msgspec.Struct, frozen=True):
    """The answer to a TokenRequest, and the texts of Warning headers."""

    answer: TokenRequest
    warnings: tuple[str, ...] = ()


class TokenIssuer(msgspec.Struct, frozen=True):
    """Issues ServiceAccount tokens."""

    keys: KeySet
    issuer: str
    audiences: tuple[str, ...]
    """The audiences of the server, the default of a token."""
    max_seconds: int = 0
    """The maximum lifetime of a token in seconds; 0 for no maximum."""
    extend_expiration: bool = True
    """Whether the injected tokens of pods live for a year and only warn after an hour."""

    def request(
        self,
        body: TokenRequest,
        namespace: str,
        name: str,
        objects: ObjectGetter,
        now: datetime,
        random: Random,
    ) -> IssuedToken:
        """Answers a TokenRequest for a ServiceAccount.

        Raises `NotFound`, `Conflict`, `BadRequest` or `Invalid` with upstream's texts.
        """
        body = _with_account_metadata(body, namespace, name, objects, now)
        audiences = body.spec.audiences or self.audiences
        seconds = _lifetime(body.spec)
        bound = _bound_object_claim(body.spec.boundObjectRef, namespace, name, objects)
        warnings: tuple[str, ...] = ()
        if 0 < self.max_seconds < seconds:
            warnings = (f"requested expiration of {seconds} seconds shortened to {self.max_seconds} seconds",)
            seconds = self.max_seconds
        lives, warn_after = seconds, None
        kube = all(audience in self.audiences for audience in audiences)
        if self.extend_expiration and bound.pod is not None and seconds == _INJECTED_POD_SECONDS and kube:
            # A client that never reloads its token is warned about, but keeps working.
            lives, warn_after = _YEAR_SECONDS, seconds
        at = int(now.timestamp())
        claims = Claims(
            aud=audiences,
            exp=at + lives,
            iat=at,
            iss=self.issuer,
            jti=str(UUID(int=random.getrandbits(128), version=4)),
            bound=msgspec.structs.replace(
                bound,
                namespace=namespace,
                serviceaccount=BoundObjectRef(name, body.metadata.uid),
                warnafter=None if warn_after is None else at + warn_after,
            ),
            nbf=at,
            sub=service_account_username(namespace, name),
        )
        status = TokenRequestStatus(
            token=encode(claims, self.keys.signer),
            expirationTimestamp=now.replace(microsecond=0) + timedelta(seconds=seconds),
        )
        spec = msgspec.structs.replace(body.spec, audiences=audiences, expirationSeconds=seconds)
        return IssuedToken(msgspec.structs.replace(body, spec=spec, status=status), warnings)


def _with_account_metadata(
    body: TokenRequest, namespace: str, name: str, objects: ObjectGetter, now: datetime
) -> TokenRequest:
    """The request with the metadata of its ServiceAccount."""
    meta = body.metadata
    if meta.name and meta.name != name:
        why = status_errors.field_invalid(
            "metadata.name", meta.name, "must match the service account name if specified"
        )
        raise status_errors.invalid(GROUP, "TokenRequest", name, [why])
    if meta.namespace and meta.namespace != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    account = _require(objects.service_account(namespace, name), "serviceaccounts", name)
    if meta.uid and meta.uid != account.metadata.uid:
        raise status_errors.conflict(
            GROUP,
            "TokenRequest",
            name,
            f"the UID in the token request ({meta.uid}) does not match"
            f" the UID of the service account ({account.metadata.uid})",
        )
    meta = msgspec.structs.replace(
        meta,
        name=name,
        namespace=namespace,
        uid=account.metadata.uid,
        creationTimestamp=now.replace(microsecond=0),
    )
    return msgspec.structs.replace(body, metadata=meta)


def _lifetime(spec: TokenRequestSpec) -> int:
    seconds = _DEFAULT_SECONDS if spec.expirationSeconds is None else spec.expirationSeconds
    why = ""
    if seconds < _MIN_SECONDS:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > _MAX_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        wrong = status_errors.field_invalid("spec.expirationSeconds", seconds, why)
        raise status_errors.invalid(GROUP, "TokenRequest", "", [wrong])
    return seconds


def _bound_object_claim(
    ref: BoundObjectReference | None, namespace: str, account: str, objects: ObjectGetter
) -> KubernetesClaim:
    """The claim with the object that a token is bound to: it is valid as long as the object exists."""
    if ref is None:
        return KubernetesClaim()
    group, slash, version = ref.apiVersion.partition("/")
    if not slash:
        group, version = "", group
    bound: KubernetesClaim
    if group == "" and ref.kind == "Pod":
        pod = _require(objects.pod(namespace, ref.name), "pods", ref.name)
        if pod.spec.serviceAccountName != account:
            raise status_errors.bad_request(
                f"cannot bind token for serviceaccount {status_errors.quote(account)}"
                " to pod running with different serviceaccount name."
            )
        bound = KubernetesClaim(pod=_ref(pod))
        if pod.spec.nodeName:
            node = objects.node(pod.spec.nodeName)
            # Without its uid if the node does not exist.
            bound = KubernetesClaim(
                pod=_ref(pod), node=BoundObjectRef(pod.spec.nodeName) if node is None else _ref(node)
            )
        uid = pod.metadata.uid
    elif group == "" and ref.kind == "Node":
        node = _require(objects.node(ref.name), "nodes", ref.name)
        bound, uid = KubernetesClaim(node=_ref(node)), node.metadata.uid
    elif group == "" and ref.kind == "Secret":
        secret = _require(objects.secret(namespace, ref.name), "secrets", ref.name)
        bound, uid = KubernetesClaim(secret=_ref(secret)), secret.metadata.uid
    else:
        raise status_errors.bad_request(
            f"cannot bind token to object of type {group}/{version}, Kind={ref.kind}"
        )
    if ref.uid and ref.uid != uid:
        raise status_errors.conflict(
            group,
            ref.kind,
            ref.name,
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in record."
            " The object might have been deleted and then recreated",
        )
    return bound


def _ref(obj: Object) -> BoundObjectRef:
    return BoundObjectRef(obj.metadata.name, obj.metadata.uid)


def _require(obj: O | None, plural: str, name: str) -> O:
    if obj is None:
        raise status_errors.not_found("", plural, name)
    return obj


# -- OpenID discovery ------------------------------------------------------------------------


OPENID_CONFIGURATION_PATH = "/.well-known/openid-configuration"
JWKS_PATH = "/openid/v1/jwks"

_CACHE = "public, max-age=3600"


class OpenIDDocument(msgspec.Struct, frozen=True):
    """A static HTTP response."""

    body: bytes
    content_type: str
    cache_control: str = _CACHE


def openid_documents(keys: KeySet, issuer: str, keyset: str) -> Mapping[str, OpenIDDocument]:
    """The OpenID configuration and the JSON Web Key Set, by path. ``keyset`` is the external URL of `JWKS_PATH`.

    Raises `ValueError` for an issuer that OpenID does not allow.
    """
    if not issuer.startswith("https://"):
        raise ValueError(f"issuer URL must use https scheme, got: {issuer}")
    for mark, part in (("?", "query"), ("#", "fragment")):
        if mark in issuer:
            raise ValueError(f"issuer URL may not include a {part}, got: {issuer}")
    if not keyset.startswith("https://"):
        raise ValueError(f"jwksURI requires https scheme, parsed as: {keyset}")
    configuration = {
        "issuer": issuer,
        "jwks_uri": keyset,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted(dict.fromkeys(key.algorithm for key in keys.all)),
    }
    return {
        OPENID_CONFIGURATION_PATH: OpenIDDocument(msgspec.json.encode(configuration), "application/json"),
        JWKS_PATH: OpenIDDocument(
            msgspec.json.encode({"keys": [key.jwk for key in keys.all]}), "application/jwk-set+json"
        ),
    }
