"""Secure serving: what a manager answers over HTTPS, to whom, and who may ask.

::

    start           Serving: all of the below, put together from flags
    door            the socket, and a request's way: who asks, may they, what is answered
    routes          which path is answered by what        replies     answers, and refusals in upstream's words
    contexts        TLS: certificates by name, renewed when their files are      suites    Go's names for ciphers
    pairs           certificates and keys, from files or made here               chains    what clients show of themselves
    trust           does an authority vouch for a client?                        bundles   the authorities, from files or the cluster
    authentication  certificates, front proxies, tokens   authorization   paths, groups, SubjectAccessReview
    counts          what is counted of those who ask      cbor            documents as CBOR
    reviews         questions to the API server           lately          answers that hold for a while
    health          /healthz and its checks               zpages          /statusz, /flagz, /configz
    views           /debug/controllers/NAME               profile         /debug/pprof/
"""
