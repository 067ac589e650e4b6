"""`python -m extproc` is `memproxy`."""

from extproc.cli import main

main()
