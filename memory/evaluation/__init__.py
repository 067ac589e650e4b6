"""Score memory on documented data sets: the figures that the README may quote come from here."""
