"""Entry point of `python -m ultrascale_stacks`, the CDK app without a checkout."""

from ultrascale_stacks.app import main

main()
