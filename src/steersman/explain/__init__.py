"""Explanations: why an object is not as it should be, from a snapshot of the cluster.

`collect` reads a snapshot with get and list only. Each function in `situations` recognizes one kind of situation in it and
yields findings. `explanation` follows owners and dependants from the object in question and ranks the findings, the deepest
cause first. `render` writes the page. `decisions` runs the controllers' own decisions over the same snapshot, with every
write answered but not sent.
"""
