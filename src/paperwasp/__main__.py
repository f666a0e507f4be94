"""`python -m paperwasp` is the command `paperwasp`."""

from paperwasp.cli import main

main()
