"""The CDK constructs that the stacks compose."""
