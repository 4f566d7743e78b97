"""Volcano: what its queues may be.

Source: https://volcano.sh/en/docs/queue/
"""

# Queues that Volcano makes itself.
# Source: https://volcano.sh/en/docs/queue/
OWN_QUEUES = ("default", "root")
# Least and greatest weight of a queue, as the schema of the Queue resource has them.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml
QUEUE_WEIGHTS = (1, 65_535)
