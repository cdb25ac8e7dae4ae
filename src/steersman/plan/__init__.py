"""Plans: what the control loops would do after a change."""
