"""HTTP: the embedded API server at a socket, over TLS, for any Kubernetes client.

=================================  ====================================================================
app                                `serve(server) -> ApiServer`: authentication, authorisation, routing
context                            `AppState` and `Context`: what handlers are given
request_info query_options         the parts of a URL; the options in its query
request_body                       bodies, decoded
handlers                           get, list, create, update, patch, delete and subresources
watch watch_registry               watches, as streams of JSON lines; bookmarks and timeouts
nonresource discovery_cache        discovery, OpenAPI, version, health
responses encoding                 objects, lists, tables and errors, as JSON or YAML
webhook_client                     calls to webhooks
aggregator                         requests that other API servers answer
metrics                            ``/metrics``
=================================  ====================================================================

Handlers build a `steersman.server.rest.request.Request` and shape its result; REST semantics are in
`steersman.server.rest`. `steersman.server.bootstrap` makes the keys, certificates and roles that a server needs.
"""
