"""Who asks, and may they: authentication and authorisation of the embedded API server.

Decisions over plain values, with no I/O. What must be looked up (accounts, pods, secrets, nodes) comes
through the small protocol of `objects`; what time it is comes with the call.

=================  ==================================================================================
objects            what must be looked up
users              `User`, and the names upstream gives to groups and accounts
authentication     `Authenticator`: a request's credentials, to a user
certificates       client certificates           bootstrap   tokens that machines join with
keys jwt accounts  signing keys, JSON Web Tokens, and what a ServiceAccount's token must hold
impersonation      acting as somebody else
tokens openid      TokenRequest, and the documents others verify tokens with
attributes         `Attributes`: what is asked for, and the refusal
rules rbac         what a rule allows; `Authorizer`: roles and bindings, indexed
escalation         nobody grants what they do not have
policy reconcile   the roles and bindings a fresh server has, and how they are kept
access identity    the review APIs: may they, may I, what may I, whose token, who am I;
restrictions       the selectors in them
authority          the server's own certificates
=================  ==================================================================================
"""
