"""Scores memory on documented data sets: the figures quoted in the README come from here."""
