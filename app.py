"""Entry point of `cdk synth`, `cdk diff` and `cdk deploy`."""

from ultrascale_stacks.app import main

main()
