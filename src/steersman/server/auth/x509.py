"""Client certificates: the user is the common name, the groups are the organizations.

`cert_verify` verifies that a trusted authority signed it and that it has not expired.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from steersman.api.jwt import InvalidCredential
from steersman.server.auth.users import CREDENTIAL_ID, User

_UID = "1.3.6.1.4.1.57683.2"
"""The OID of the user's uid in the subject of a certificate."""


@lru_cache(maxsize=1024)
def certificate_user(der: bytes) -> User | None:
    """The user of a certificate; None if it has no common name. Raises `InvalidCredential` if it cannot be read."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID, ObjectIdentifier

    try:
        subject = x509.load_der_x509_certificate(der).subject
    except ValueError:
        raise InvalidCredential("the client certificate cannot be read") from None

    def values(oid: ObjectIdentifier) -> list[str]:
        values = (attribute.value for attribute in subject.get_attributes_for_oid(oid))
        return [value if isinstance(value, str) else value.decode("utf-8", "replace") for value in values]

    # Go takes the last of several common names.
    names = values(NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    uids = values(ObjectIdentifier(_UID))
    if len(uids) > 1:
        raise InvalidCredential(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        raise InvalidCredential("UID cannot be an empty string")
    return User(
        names[-1],
        uid=uids[0] if uids else "",
        groups=tuple(values(NameOID.ORGANIZATION_NAME)),
        extra={CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)},
    )
