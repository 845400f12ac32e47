"""What the model and the user say, and what a turn came to."""
