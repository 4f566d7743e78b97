"""Block calendar: it gives Capacity Block pools nodes only inside their window."""
