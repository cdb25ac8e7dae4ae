"""HTTP/1.1 for servers: request heads, bodies, responses and connections.

Both the embedded API server and the manager's own endpoints (metrics, health, debug) are served through it.
"""
