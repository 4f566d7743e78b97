"""Rates at which nodes copy and write checkpoints: published or measured figures."""

S3_GBPS_PER_PROCESS = 10.0
"""Default target of AWS's S3 connector for PyTorch, in Gbit/s for each process."""

S3_PART_BYTES = 64 * 2**20
"""Size of the parts in which our programs upload to S3; the connector's default is 8 MiB."""

CONNECTOR_SOURCE = (
    "https://awslabs.github.io/s3-connector-for-pytorch/_modules/s3torchconnector/"
    "_s3client/s3client_config.html"
)

S3_WRITES_PER_SECOND = 3_500
"""Write requests a second to one prefix. S3 divides a prefix with more requests, within an hour.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
    https://repost.aws/knowledge-center/s3-object-key-naming-pattern
"""

S3_RATE_SOURCE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"

NODE_GBPS = 100.0
"""Rate of one instance to S3 in its Region, or to a file system over TCP, in Gbit/s."""

NODE_SOURCE = "https://repost.aws/knowledge-center/s3-maximum-transfer-speed-ec2"

LUSTRE_SOURCE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html"
"""Page that states the throughput of a file system by its size, and of a client over TCP."""

HELD_SECONDS_PER_GB = 0.8
"""Seconds that training waits while our programs save, per GB of a process's share.

The process copies its share into the memory of its node, and writes the copy while training goes
on. Measured on a CPU, see docs/training.md#speed; a GPU, not measured, copies faster, into pinned
memory.
"""

HELD_SOURCE = "https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html"
"""Page that says for which part of an asynchronous save training waits."""
