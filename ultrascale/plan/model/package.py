"""The wheel of this product that a pipeline installs from a bucket."""

from ultrascale.frozen import Frozen


class PackageObject(Frozen):
    """A wheel of this product in Amazon S3."""

    bucket: str  # Name of the bucket
    key: str  # Key of the object
    sha256: str | None  # Digest that it must have, in hexadecimal digits; None: any
    account: str  # Account of the pipeline, whose builds install it

    @property
    def url(self) -> str:
        """URL of the object, as the AWS CLI takes it."""
        return f"s3://{self.bucket}/{self.key}"


class PackagePlan(Frozen):
    """The package of this product that the builds of a pipeline install."""

    words: str | None  # The package, in words; None without a pipeline
    # The wheel that they install, where it is in a bucket.
    object: PackageObject | None
