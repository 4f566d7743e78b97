"""Words that the nodes and the jobs of this app share."""
