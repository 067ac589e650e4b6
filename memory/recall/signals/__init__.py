"""Decides whether a request needs memory: signals of filters ahead, rules, then a small classifier."""
