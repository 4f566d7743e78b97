"""Rates at which nodes copy and write checkpoints, published or measured."""

S3_GBPS_PER_PROCESS = 10.0
"""Gbit/s that AWS's S3 connector for PyTorch aims at in each process, by default."""

S3_PART_BYTES = 64 * 2**20
"""Bytes that our programs let the connector send in one request; its own default is 8 MiB."""

CONNECTOR_SOURCE = (
    "https://awslabs.github.io/s3-connector-for-pytorch/_modules/s3torchconnector/"
    "_s3client/s3client_config.html"
)

S3_WRITES_PER_SECOND = 3_500
"""Requests a second that write to one prefix. S3 divides a prefix that gets more, within an hour.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
    https://repost.aws/knowledge-center/s3-object-key-naming-pattern
"""

S3_RATE_SOURCE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"

NODE_GBPS = 100.0
"""Gbit/s of one instance to S3 of its Region, or to a file system over TCP."""

NODE_SOURCE = "https://repost.aws/knowledge-center/s3-maximum-transfer-speed-ec2"

LUSTRE_SOURCE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html"
"""Page that states the throughput of a file system by its size, and of a client over TCP."""

HELD_SECONDS_PER_GB = 0.8
"""Seconds that training waits for a save of our programs, for each GB of a process's share.

The process copies its share into the memory of its node, and writes the copy while training goes
on. Measured on a CPU, which docs/training.md#speed describes; a GPU, unmeasured, copies into pinned
memory, and faster.
"""

HELD_SOURCE = "https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html"
"""Page that says which part of an asynchronous save training waits for."""
