"""Registry: the served resources and the strategy of each kind, as upstream's ``pkg/registry``."""
