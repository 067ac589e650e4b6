"""What the user says of themselves, found in their messages by rules: the verbatim way of learning."""
