"""Messages of the user and the model, and the results of turns."""
