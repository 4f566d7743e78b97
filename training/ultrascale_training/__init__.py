"""Parts of training programs that continue after lost workers, nodes and jobs."""
