"""HTTP in and out: the embedded API server at a socket, over TLS, for any Kubernetes client.

::

    app         serve(server, ...) -> Edge: the socket, who asks, may they, and which handler answers
    requests    a URL, to what is asked for           options    what its query and body ask for besides
    bodies      what was sent, to structs             answers    structs, to what is sent: JSON, YAML, tables
    reading     get and list                          writing    create, update, patch, delete
    streams     watches                               below      subresources, reviews and tokens
    documents   discovery, OpenAPI, version           health     /healthz, /livez, /readyz, /metrics

`steersman.server.bootstrap` puts together what an edge needs: keys, certificates, roles.
"""
