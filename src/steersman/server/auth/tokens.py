"""TokenRequest: tokens of ServiceAccounts, for an audience, for a while, bound to an object."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from steersman.api.generated.authentication_v1 import (
    BoundObjectReference,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
)
from steersman.api.jwt import Bound, Claims, Ref, encode
from steersman.api.signing_keys import Keys
from steersman.server import status_errors
from steersman.server.auth.lookup import Objects
from steersman.server.auth.users import account_name

if TYPE_CHECKING:
    from steersman.api.generated.meta_v1 import Object

O = TypeVar("O")

GROUP = "authentication.k8s.io"

_DEFAULT = 60 * 60
_SHORTEST = 10 * 60
_LONGEST = 1 << 32
_INJECTED = 60 * 60 + 7
"""What ServiceAccount admission asks for on behalf of pods. So odd a number is nobody else's."""
_YEAR = 365 * 24 * 60 * 60


class Minted(NamedTuple):
    """The answer to a request, and what to say in Warning headers."""

    answer: TokenRequest
    warnings: tuple[str, ...] = ()


class Mint(msgspec.Struct, frozen=True):
    """Makes tokens in the name of an issuer."""

    keys: Keys
    issuer: str
    audiences: tuple[str, ...]
    """The server's own: what a token is for when its request does not say."""
    longest: int = 0
    """In seconds, if tokens may not live as long as they please."""
    extend: bool = True
    """Whether the tokens that pods are given live for a year and only warn after an hour."""

    def request(
        self,
        body: TokenRequest,
        namespace: str,
        name: str,
        objects: Objects,
        now: datetime,
        random: Random,
    ) -> Minted:
        """Answer a request for a token of a ServiceAccount.

        Raises `NotFound`, `Conflict`, `BadRequest` or `Invalid` in upstream's words.
        """
        body = _identified(body, namespace, name, objects, now)
        audiences = body.spec.audiences or self.audiences
        seconds = _lifetime(body.spec)
        bound = _bind(body.spec.boundObjectRef, namespace, name, objects)
        warnings: tuple[str, ...] = ()
        if 0 < self.longest < seconds:
            warnings = (f"requested expiration of {seconds} seconds shortened to {self.longest} seconds",)
            seconds = self.longest
        lives, warn_after = seconds, None
        kube = all(audience in self.audiences for audience in audiences)
        if self.extend and bound.pod is not None and seconds == _INJECTED and kube:
            # A client that never reads its token anew is warned about, and not cut off.
            lives, warn_after = _YEAR, seconds
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
                serviceaccount=Ref(name, body.metadata.uid),
                warnafter=None if warn_after is None else at + warn_after,
            ),
            nbf=at,
            sub=account_name(namespace, name),
        )
        status = TokenRequestStatus(
            token=encode(claims, self.keys.signer),
            expirationTimestamp=now.replace(microsecond=0) + timedelta(seconds=seconds),
        )
        spec = msgspec.structs.replace(body.spec, audiences=audiences, expirationSeconds=seconds)
        return Minted(msgspec.structs.replace(body, spec=spec, status=status), warnings)


def _identified(
    body: TokenRequest, namespace: str, name: str, objects: Objects, now: datetime
) -> TokenRequest:
    """The request with the metadata of the ServiceAccount it is for."""
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
    account = _found(objects.service_account(namespace, name), "serviceaccounts", name)
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
    seconds = _DEFAULT if spec.expirationSeconds is None else spec.expirationSeconds
    why = ""
    if seconds < _SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        wrong = status_errors.field_invalid("spec.expirationSeconds", seconds, why)
        raise status_errors.invalid(GROUP, "TokenRequest", "", [wrong])
    return seconds


def _bind(ref: BoundObjectReference | None, namespace: str, account: str, objects: Objects) -> Bound:
    """The claim that names the object a token shall live and die with."""
    if ref is None:
        return Bound()
    group, slash, version = ref.apiVersion.partition("/")
    if not slash:
        group, version = "", group
    bound: Bound
    if group == "" and ref.kind == "Pod":
        pod = _found(objects.pod(namespace, ref.name), "pods", ref.name)
        if pod.spec.serviceAccountName != account:
            raise status_errors.bad_request(
                f"cannot bind token for serviceaccount {status_errors.quote(account)}"
                " to pod running with different serviceaccount name."
            )
        bound = Bound(pod=_named(pod))
        if pod.spec.nodeName:
            node = objects.node(pod.spec.nodeName)
            # Better the node's name alone than no word of it.
            bound = Bound(pod=_named(pod), node=Ref(pod.spec.nodeName) if node is None else _named(node))
        uid = pod.metadata.uid
    elif group == "" and ref.kind == "Node":
        node = _found(objects.node(ref.name), "nodes", ref.name)
        bound, uid = Bound(node=_named(node)), node.metadata.uid
    elif group == "" and ref.kind == "Secret":
        secret = _found(objects.secret(namespace, ref.name), "secrets", ref.name)
        bound, uid = Bound(secret=_named(secret)), secret.metadata.uid
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


def _named(obj: Object) -> Ref:
    return Ref(obj.metadata.name, obj.metadata.uid)


def _found(obj: O | None, plural: str, name: str) -> O:
    if obj is None:
        raise status_errors.not_found("", plural, name)
    return obj
