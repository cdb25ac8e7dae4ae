"""Parts that several workload controllers share, named as in kube-controller-manager's pkg/controller."""
