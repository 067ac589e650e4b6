"""`python -m memory`: the memory commands without the data plane. Decides nothing."""

from memory.cli.main import commands

if __name__ == "__main__":
    commands(prog_name="python -m memory")
