"""The wheel of this product that a pipeline installs from a bucket."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageObject:
    """A wheel of this product in Amazon S3.

    Attributes:
        bucket: Name of the bucket.
        key: Key of the object.
        sha256: Digest that it must have, in hexadecimal digits; None: any.
        account: Account of the pipeline, whose builds install it.
    """

    bucket: str
    key: str
    sha256: str | None
    account: str

    @property
    def url(self) -> str:
        """URL of the object, as the AWS CLI takes it."""
        return f"s3://{self.bucket}/{self.key}"
