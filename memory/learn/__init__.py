"""The learning worker: turns become memories; slow, idempotent, retried."""
