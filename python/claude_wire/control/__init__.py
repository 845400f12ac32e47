"""Both halves of the control protocol, which hosts and agents share: asking and answering."""
