"""API shapes: parse a `Conversation` from a request body, insert notes, and change nothing else."""
