"""Entry point of `python -m ultrascale`."""

from ultrascale.cli import main

main()
