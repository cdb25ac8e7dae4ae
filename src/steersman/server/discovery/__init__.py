"""Discovery and OpenAPI documents: what the server serves, described for clients."""
