"""The verbs of the REST API on stored objects."""
