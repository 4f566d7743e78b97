"""Jobs: pods, placement, commands and queues."""
