"""An S3 over HTTP in this process, for clients that are not botocore."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import boto3
import pytest

BUCKET = "checkpoints"
REGION = "us-east-1"


@dataclass(frozen=True)
class S3Server:
    """A running server, and the variables by which clients find it."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def running_s3() -> Generator[S3Server]:
    """Run a server with one empty bucket."""
    moto = pytest.importorskip("moto.server", reason="no moto[server] here: run `make training`")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        found = S3Server(f"http://{host}:{port}")
        client = boto3.client(
            "s3",
            endpoint_url=found.endpoint,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.create_bucket(Bucket=BUCKET)
        yield found
    finally:
        server.stop()
