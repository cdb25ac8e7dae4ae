"""What a manager costs and how fast it converges, measured beside the reference."""
