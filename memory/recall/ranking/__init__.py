"""Which memories go along, best first: evidence of each kind, weighed on arrays. Pure."""
