"""The embedded API server.

From bottom to top; imports go down only (import-linter keeps the layers):

==============================  ==================================================================
storage                         the store, watch cache and streams; durable log and snapshots
codec                           JSON, YAML and protobuf; structs and documents; content negotiation
defaulting validation tables    defaults, validation and printed columns of every kind
auth                            authentication, RBAC, tokens and certificates
registry                        the resources that are served, and the strategy of each
apply                           managedFields and server-side apply
server                          `Server`: the store, the registry, admission, auth and a clock
discovery crd                   discovery and OpenAPI documents; custom resources
admission                       the admission plugins
rest                            what each verb does, on one `Request` value
local http                      the two adapters: an `Api` in process, and HTTP
authorized_api                  an in-process `Api` with the rights of a user
bootstrap                       keys, certificates, roles and everything else that a fresh cluster has
==============================  ==================================================================
"""
