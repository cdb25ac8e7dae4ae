"""The cloud controllers: load balancers of Services, routes of nodes, and nodes whose instance is gone.

They run where ``--cloud-provider`` names a provider that has the part they need (`steersman.api.cloud`).

differs: kube-controller-manager has had no provider of its own since 1.31, so there these three never run; they behave as
those of cloud-controller-manager 1.36.
"""
