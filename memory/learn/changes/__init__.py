"""Whether a new statement changes what is known: the rules of supersession."""
