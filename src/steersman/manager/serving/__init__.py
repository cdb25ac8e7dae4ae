"""Secure serving: the HTTPS endpoints of a manager, with delegated authentication and authorization.

::

    setup           SecureServing: all of the below, configured from flags
    listener        the socket; authenticates, authorizes and routes a request
    routes          paths and their handlers              responses       responses and errors in upstream's format
    tls             SSL contexts by server name (SNI), reloaded with their files
    serving_certs   the server's certificates             client_certs    the certificates that clients present
    ca_bundles      CAs of clients and front proxies      cert_verify     verification of client certificates
    authentication  request headers, certificates, tokens authorization   allowed paths, groups, SubjectAccessReview
    reviews         TokenReview and SubjectAccessReview   ciphers         Go's names of cipher suites
    health          /healthz and its checks               zpages          /statusz and /flagz
    debug           /debug/controllers/NAME               profile         /debug/pprof/
    metrics         metrics of requests
"""
