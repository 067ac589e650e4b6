"""Summaries of sessions that are over, for questions about past conversations."""
