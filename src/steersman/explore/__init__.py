"""The explorer: live through a scenario, then through it again with everything that may go wrong."""
