"""What the server serves: resources and the strategy of each kind."""
