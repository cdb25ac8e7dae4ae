"""CertificateSigningRequests: the controllers that approve, sign and clean them up."""
