"""API shapes: read a `Conversation` out of a request body, write a note into it, touch nothing else."""
