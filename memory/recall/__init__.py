"""In the request: decide, search, rank, inject, inside a deadline; recall never fails the request."""
