"""The certificate and keys of simulated clusters belong together."""

import subprocess
import sys
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from steersman.testing import credentials


def test_the_certificate_is_that_of_the_authority_whose_key_it_is_read_with() -> None:
    found = x509.load_pem_x509_certificate(credentials.read("ca.crt"))
    key = load_pem_private_key(credentials.read("ca.key"), None)
    assert found.public_key() == key.public_key()
    found.verify_directly_issued_by(found)
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert found.not_valid_before_utc == datetime(2020, 1, 1, tzinfo=UTC)
    assert found.not_valid_after_utc == datetime(2120, 1, 1, tzinfo=UTC)


def test_a_cluster_starts_without_cryptography() -> None:
    """It takes a tenth of the time in which a test starts."""
    look = "import sys; from steersman.testing import Cluster; Cluster().close(); print('cryptography' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
