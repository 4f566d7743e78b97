"""The core's side of the parts: the face that each has, and the way to their table."""
