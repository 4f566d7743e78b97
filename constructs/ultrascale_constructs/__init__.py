"""CDK constructs that the stacks consist of."""
