"""Learning with the help of a chat model: what it is asked, and what is believed of its answers."""
