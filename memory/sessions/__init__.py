"""Conversations as a whole: what happens to those that grow long."""
