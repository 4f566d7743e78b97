"""Jobs launched by the `torchx` command line: components, named resources and a scheduler.

Nothing else imports this package, and nothing else imports torchx, which is an optional extra.

Source: https://docs.pytorch.org/torchx/main/
"""
