"""The pipeline of clusters: its stages, gates and permissions."""
