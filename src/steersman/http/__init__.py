"""HTTP/1.1: heads, bodies and connections, for the embedded API server and the manager's own endpoints."""
