"""Compaction: a long history is replaced by a structured state, its last turns verbatim, and memories."""
