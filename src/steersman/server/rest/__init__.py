"""REST semantics: what each verb does to the state, on one `Request` value.

The in-process `Api` (`steersman.server.local`) and HTTP (`steersman.server.http`) are adapters: they build a
`Request`, decode the body, and shape the result.

============================  ====================================================================
request                       `Request`: user, verb, resource, name and options; `Result`
perform                       `perform(server, request, body)`: every writing request starts here
create update patch apply     the verbs that write an object or a part of it
delete                        delete and deletecollection
listing selection watch       get, list with pages, selectors, watch
subresources eviction         scale, binding, eviction
reviews                       reviews and token requests: created, answered and never stored
warnings                      the warnings for a write that was carried out
dry_run                       storage that discards every write
============================  ====================================================================

Every function is synchronous and takes effect as a whole: it raises and nothing happened, or it returns and
everything has. Bodies are full structs (`steersman.server.codec.convert` makes them). Differences between
resources are in their strategies (`steersman.server.registry`).
"""
