"""Resource quota evaluation, for the admission plugin and the controller: usage of objects, and scopes."""
