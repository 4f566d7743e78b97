"""Rates at which nodes write checkpoints, as far as they are published."""

S3_GBPS_PER_PROCESS = 10.0
"""Gbit/s that AWS's S3 connector for PyTorch aims at in each process, by default.

Source: https://awslabs.github.io/s3-connector-for-pytorch/_modules/s3torchconnector/_s3client/s3client_config.html
"""

NODE_GBPS = 100.0
"""Gbit/s of one instance to S3 of its Region, or to a file system over TCP.

Sources:
    https://repost.aws/knowledge-center/s3-maximum-transfer-speed-ec2
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html
"""
