"""Certificate signing requests: who may have what, and for how long it is remembered."""
