"""Dynamic resource allocation (DRA) in simulated clusters: devices of nodes, and ResourceClaims that are allocated to pods.

- `driver`: a simulated driver, which publishes ResourceSlices with the devices of simulated nodes;
- `selectors`: CEL selectors on devices;
- `allocator`: the devices for the claims of a pod on one node, as pure functions;
- `plugin`: the scheduler's part, which writes allocations and reservations;
- `prepare`: the kubelet's part, which waits for them.
"""
