"""Control requests and their answers, by id: the halves that both sides share."""
