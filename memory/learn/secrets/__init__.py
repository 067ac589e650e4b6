"""Secrets in a text: where they are, and what is put in their place."""
