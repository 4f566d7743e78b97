"""Jobs launched by the `torchx` command line: components, named resources and a scheduler.

No other package imports this package, or torchx, which is an optional extra.

Source: https://docs.pytorch.org/torchx/main/
"""
