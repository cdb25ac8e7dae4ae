"""The dashboard: the page at ``/ui`` and the JSON behind it.

`summaries` says in a few fields how an object is. `feed` follows what one user may list, and tells the viewers of that user;
`problems` explains what is not as it should be. `object_page`, `graph` and `timeline` make the page of one object. `site` routes
requests to them, for `steersman up` and for `steersman run`, which connect it to their own authentication and authorization.

All of it is imported when the first request for ``/ui`` arrives, and nothing is watched while there is no viewer.
"""
