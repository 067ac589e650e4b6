"""In the worker: turns become memories; slow, idempotent, retried."""
