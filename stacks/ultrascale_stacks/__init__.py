"""CDK stacks: units of deployment, one for each lifecycle."""
