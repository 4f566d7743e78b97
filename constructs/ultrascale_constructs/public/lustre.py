"""FSx for Lustre file systems."""

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale import config
from ultrascale.plan.storage import plan_lustre
from ultrascale_constructs import lustre
from ultrascale_constructs.cdk_types import child
from ultrascale_constructs.key import Key
from ultrascale_constructs.public.arguments import Arguments, defining
from ultrascale_constructs.public.cluster import AnyCluster, context_of
from ultrascale_constructs.public.node_pool import pool_name


class LustreFileSystem(Construct):
    """Defines a persistent SSD file system beside a cluster, with the ports its nodes need.

    The file system has version 2.15, which the kernels of AL2023 mount, compresses by LZ4, grows
    its metadata IOPS with its capacity, and is backed up daily. It outlives its stack, and so do
    its key and its security group; set another removal policy on `file_system`.

    Sources:
        https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
        https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
    """

    file_system: fsx.CfnFileSystem
    """The file system."""
    file_system_id: str
    """Its id, the `volumeHandle` of a PersistentVolume of `fsx.csi.aws.com`."""
    dns_name: str
    """DNS name that clients mount."""
    mount_name: str
    """Lustre mount name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        subnet: ec2.ISubnet,
        capacity_gib: int,
        throughput_mbps_per_tib: int = 250,
        encryption_key: kms.IKey | None = None,
        name: str | None = None,
    ) -> None:
        """Define the file system.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster whose nodes mount it: members of its cluster security group.
            subnet: Its one subnet: nodes in another zone pay for traffic, and wait longer.
            capacity_gib: Storage in GiB: 1200, 2400, then steps of 2400.
            throughput_mbps_per_tib: Throughput in MB/s per TiB: 125, 250, 500 or 1000.
            encryption_key: Key of the data. Default: a key of its own, which is kept.
            name: Name in the description of its security group. Default: the construct's id in
                lower case.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.construct("subnet", subnet, "pass such as vpc.private_subnets[0]", "subnet_id")
        if encryption_key is not None:
            arguments.construct("encryption_key", encryption_key, "pass a kms.Key", "key_arn")
        arguments.stop()
        context = context_of(cluster, arguments, "vpc", "security_group_id")
        zones = arguments.zones([subnet], "subnet")
        reading = arguments.judge(
            config.Stated(
                kind=config.Lustre,
                at=("this file system",),
                keys={
                    "name": pool_name(id) if name is None else name,
                    "zone": zones[0],
                    "capacity_gib": capacity_gib,
                    "throughput_mbps_per_tib": throughput_mbps_per_tib,
                },
                names={("zone",): "subnet"},
            ),
            zones=zones,
        )
        assert context is not None, "a cluster that lacks something is refused"
        (stated,) = reading.every(config.Lustre)
        with defining():
            key = encryption_key
            if key is None:
                key = Key(self, "Key", description=f"File system {self.node.path}").key
            resource = lustre.LustreFileSystem(
                self,
                "FileSystem",
                plan=plan_lustre(stated),
                key=key,
                cluster=context,
                subnet_id=subnet.subnet_id,
            )
        self.file_system = child(resource, fsx.CfnFileSystem)
        self.file_system_id = resource.file_system_id
        self.dns_name = resource.dns_name
        self.mount_name = resource.mount_name
