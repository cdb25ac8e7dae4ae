"""steersman: the control loops of Kubernetes, to run, import, question and fast-forward."""

__version__ = "0.1.0"
