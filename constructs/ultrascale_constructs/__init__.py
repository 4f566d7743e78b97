"""CDK constructs of which the stacks consist."""
