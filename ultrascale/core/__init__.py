"""The core's side of the parts: the face of each, and the way to their table."""
