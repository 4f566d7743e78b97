"""Parts of training programs that go on after lost workers, nodes and jobs."""
