"""Lets `python -m ultrascale.cli` run without the installed script."""

from ultrascale.cli import main

main()
