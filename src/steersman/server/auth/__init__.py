"""Authentication and authorization of the embedded API server.

All decisions are pure: objects that must be looked up (ServiceAccounts, Pods, Secrets, Nodes) come through the
protocol of `lookup`, and the time is a parameter.

=====================  ==============================================================================
users                  `User`, and the user and group names upstream reserves
authentication         `Authenticator`: the user of a request's credentials
x509, cert_verify      users of client certificates, and their verification
bootstrap_tokens       users of bootstrap tokens
service_accounts       users of ServiceAccount tokens
impersonation          requests that are carried out as another user
tokens                 `TokenIssuer`: TokenRequest, and OpenID discovery
attributes             `Attributes`, `Decision` and the `Authorizer` protocol
rbac, rbac_rules       `RBACAuthorizer`: an index of roles and bindings; what a PolicyRule allows
node_authorizer        `NodeAuthorizer`: what kubelets may do; node_graph finds the objects of their pods
escalation             privilege escalation prevention
bootstrap_policy       the roles and bindings of a new server, and their reconciliation
reviews                the review APIs; selector_restrictions validates the selectors in them
ca                     `CertificateAuthority`
=====================  ==============================================================================
"""
