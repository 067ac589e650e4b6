"""The words of statements: word lists by language, and what is read out of a sentence alone. Decides nothing."""
