"""What the user says of what is remembered: that it is wrong, or right, or to be forgotten."""
