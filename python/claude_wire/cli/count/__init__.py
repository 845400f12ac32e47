"""What recordings add up to."""
