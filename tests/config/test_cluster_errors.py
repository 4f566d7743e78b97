"""Mistakes in the cluster's own keys, its network and its control plane."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_network
from tests.support.pools import HYPERPOD_POOL, SYSTEM_POOL, make_document

# Twelve digits that are none of ASCII.
ARABIC = "\u0661" * 12
ROLE = "arn:aws:iam::111122223333:role/"

BAD: dict[str, tuple[dict[str, Any], str]] = {
    # --- the file's own keys
    "unknown key": (
        make_document(colour="us-west-2"),
        "colour: unknown key 'colour'; known: $schema, account, agreed_limits, backend, hyperpod, "
        "images, jobs, karpenter, keys, observability, permissions_boundary, pipeline, requires, "
        "scheduling, serving, storage",
    ),
    "boundary by its ARN": (
        make_document(permissions_boundary="arn:aws:iam::111122223333:policy/roles"),
        "permissions_boundary: not the name of an IAM policy, "
        "got 'arn:aws:iam::111122223333:policy/roles'; "
        "write its name alone, without the ARN and without a path",
    ),
    "misspelt key": (
        make_document(region=None, regoin="us-west-2"),
        "regoin: unknown key 'regoin'; did you mean region?",
    ),
    "misspelt key beside the right one": (
        make_document(regoin="us-west-2"),
        "regoin: unknown key 'regoin'; did you mean region?",
    ),
    "missing key": (make_document(region=None), "region: missing; add it"),
    "name too long": (
        make_document(name="a" * 41),
        f"name: not a DNS label of at most 40 characters, got '{'a' * 41}'; "
        "use lower-case letters, digits and '-', from a letter to a letter or digit",
    ),
    "unknown Region": (
        make_document(region="us-wset-2"),
        "region: unknown Region 'us-wset-2'; did you mean us-west-2?",
    ),
    "account without its leading quote": (
        make_document(account=111122223333),
        "account: not text, got 111122223333; put it in quotes",
    ),
    "account too short": (
        make_document(account="1111"),
        "account: not an AWS account id, got '1111'; write its 12 digits in quotes",
    ),
    "account that nobody has": (
        make_document(account="000000000000"),
        "account: not an AWS account id, got '000000000000'; write its 12 digits in quotes",
    ),
    "account in digits of another script": (
        make_document(account=ARABIC),
        f"account: not an AWS account id, got '{ARABIC}'; write its 12 digits in quotes",
    ),
    # --- network
    "misspelt nested key": (
        make_document(network={"vpc_cidr": "10.0.0.0/16", "zonez": ["us-west-2a"]}),
        "network.zonez: unknown key 'zonez'; did you mean zones?",
    ),
    "one zone": (
        make_document(
            network={"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2b"]},
        ),
        "network.zones: EKS needs subnets in two zones, got [us-west-2b]; add a second zone",
    ),
    "zone of another Region": (
        with_network(zones=["us-west-2a", "us-west-2b", "us-east-1a"]),
        "network.zones[2]: not a zone of us-west-2, got 'us-east-1a'; "
        "write its name, such as us-west-2a, or its zone id",
    ),
    "zone without control planes": (
        make_document(
            region="us-east-1",
            network={"vpc_cidr": "10.0.0.0/16", "zones": ["use1-az3", "use1-az1"]},
            pools=[SYSTEM_POOL],
        ),
        "network.zones[0]: a zone of which EKS takes no subnet for a control plane, "
        "got 'use1-az3'; use one of use1-az1, use1-az2, use1-az4, use1-az5, use1-az6",
    ),
    "Local Zone": (
        with_network(zones=["us-west-2-lax-1a", "us-west-2a", "us-west-2b"]),
        "network.zones[0]: a Local or Wavelength Zone of which EKS takes no subnet for a control "
        "plane, got 'us-west-2-lax-1a'; "
        "use one of us-west-2a, us-west-2b, us-west-2c, us-west-2d",
    ),
    "letter that the Region does not have": (
        with_network(zones=["us-west-2x", "us-west-2a", "us-west-2b"]),
        "network.zones[0]: no zone of us-west-2, got 'us-west-2x'; "
        "it has us-west-2a, us-west-2b, us-west-2c, us-west-2d",
    ),
    "zone twice": (
        with_network(zones=["us-west-2b", "us-west-2a", "us-west-2b"]),
        "network.zones[2]: stands in the list twice, got 'us-west-2b'; keep one",
    ),
    "zone names and zone ids, which may be one zone": (
        with_network(zones=["us-west-2a", "us-west-2b", "usw2-az2"]),
        "network.zones: zone names and zone ids mixed, so that two of them may be one zone, "
        "got [us-west-2a, us-west-2b, usw2-az2]; write names alone, or ids alone",
    ),
    "VPC range too large": (
        with_network(vpc_cidr="10.0.0.0/8"),
        "network.vpc_cidr: not a size that a VPC takes, got '10.0.0.0/8'; "
        "use a mask from /16 to /28",
    ),
    "VPC range with host bits": (
        with_network(vpc_cidr="10.0.0.5/16"),
        "network.vpc_cidr: the address is inside its range, not its start, got '10.0.0.5/16'; "
        "did you mean 10.0.0.0/16?",
    ),
    "VPC range that is none": (
        with_network(vpc_cidr="10.0/16"),
        "network.vpc_cidr: not an IPv4 range, got '10.0/16'; "
        "write an address and a mask, such as 10.0.0.0/16",
    ),
    **{
        f"VPC range of {use}": (
            with_network(vpc_cidr=block),
            f"network.vpc_cidr: a range of {use}, of which no VPC takes any, got '{block}'; "
            "use a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16",
        )
        for block, use in {
            "0.0.0.0/16": "addresses of this network itself",
            "127.0.0.0/16": "loopback addresses",
            "169.254.0.0/16": "link-local addresses",
            "239.255.0.0/24": "multicast addresses",
            "250.0.0.0/16": "addresses that are reserved for future use",
        }.items()
    },
    "pod range of link-local addresses": (
        with_network(pod_cidrs=["169.254.0.0/16"]),
        "network.pod_cidrs[0]: a range of link-local addresses, of which no VPC takes any, "
        "got '169.254.0.0/16'; use a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16",
    ),
    "pod blocks of multicast addresses": (
        with_network(pod_cidrs={"count": 2, "from": "239.0.0.0/8"}),
        "network.pod_cidrs.from: a range of multicast addresses, of which no VPC takes any, "
        "got 239.0.0.0/16; use a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16",
    ),
    "pod range that AWS uses itself": (
        with_network(pod_cidrs=["100.64.0.0/16", "198.19.0.0/16"]),
        "network.pod_cidrs[1]: a range that EC2 does not add to a VPC of 10.0.0.0/16, "
        "got '198.19.0.0/16'; use one of 100.64.0.0/10, or of the same private range",
    ),
    "pod range of another private range": (
        with_network(pod_cidrs=["192.168.0.0/16"]),
        "network.pod_cidrs[0]: a range that EC2 does not add to a VPC of 10.0.0.0/16, "
        "got '192.168.0.0/16'; use one of 100.64.0.0/10, or of the same private range",
    ),
    "pod range that EC2 keeps free beside its neighbour": (
        with_network(vpc_cidr="10.1.0.0/16", pod_cidrs=["10.0.128.0/17"]),
        "network.pod_cidrs[0]: a range that EC2 does not add to a VPC of 10.1.0.0/16, "
        "got '10.0.128.0/17'; use one of 100.64.0.0/10, or of the same private range",
    ),
    "more pod ranges than a VPC takes": (
        with_network(pod_cidrs={"count": 50, "from": "100.64.0.0/10"}),
        "network.pod_cidrs.count: more secondary ranges than the 49 that a VPC takes beside its "
        "first, got 50; write fewer and larger ones",
    ),
    "pod range inside the VPC's": (
        with_network(pod_cidrs=["10.0.64.0/18"]),
        "network.pod_cidrs[0]: overlaps network.vpc_cidr 10.0.0.0/16, got '10.0.64.0/18'; "
        "choose a free range",
    ),
    "pod ranges inside each other": (
        with_network(pod_cidrs=["100.64.0.0/16", "100.64.0.0/17"]),
        "network.pod_cidrs[1]: overlaps network.pod_cidrs[0] 100.64.0.0/16, got '100.64.0.0/17'; "
        "choose a free range",
    ),
    "pod range too large": (
        with_network(pod_cidrs=["100.64.0.0/10"]),
        "network.pod_cidrs[0]: not a size that a VPC takes, got '100.64.0.0/10'; "
        "use a mask from /16 to /28",
    ),
    "more pod blocks than there are": (
        with_network(pod_cidrs={"count": 65, "from": "100.64.0.0/10"}),
        "network.pod_cidrs.count: more /16 blocks than 100.64.0.0/10 has, got 65; "
        "write at most 64, or name a larger range",
    ),
    "no pod block at all": (
        with_network(pod_cidrs={"count": 0, "from": "100.64.0.0/10"}),
        "network.pod_cidrs.count: out of range, got 0; write at least 1",
    ),
    "pod blocks of a range too small": (
        with_network(pod_cidrs={"count": 1, "from": "100.64.0.0/18"}),
        "network.pod_cidrs.from: smaller than one /16 block, got '100.64.0.0/18'; "
        "name a larger range, such as 100.64.0.0/10",
    ),
    "pod block that is the VPC's": (
        with_network(pod_cidrs={"count": 3, "from": "10.0.0.0/14"}),
        "network.pod_cidrs.from: overlaps network.vpc_cidr 10.0.0.0/16, got 10.0.0.0/16; "
        "choose a free range",
    ),
    # --- kubernetes
    "unsupported version": (
        make_document(kubernetes={"version": "1.33"}),
        "kubernetes.version: not a Kubernetes version this product supports, got '1.33'; "
        "use 1.35, 1.36",
    ),
    "version as a number": (
        make_document(kubernetes={"version": 1.35}),
        "kubernetes.version: not text, got 1.35; put it in quotes",
    ),
    "version later than Volcano's": (
        make_document(kubernetes={"version": "1.36"}, scheduling={"queueing": "volcano"}),
        "kubernetes.version: later than Volcano supports, got '1.36'; use 1.35",
    ),
    "version later than HyperPod's": (
        make_document(kubernetes={"version": "1.36"}, pools=[SYSTEM_POOL, HYPERPOD_POOL]),
        "kubernetes.version: later than HyperPod supports, got '1.36'; use 1.35",
    ),
    "misspelt tier": (
        make_document(kubernetes={"control_plane_tier": "xxl"}),
        "kubernetes.control_plane_tier: unknown value, got 'xxl'; did you mean xl?",
    ),
    "user as admin": (
        make_document(kubernetes={"admins": ["arn:aws:iam::111122223333:user/ana"]}),
        "kubernetes.admins[0]: not the ARN of an IAM role, "
        "got 'arn:aws:iam::111122223333:user/ana'; write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    "admin of another partition": (
        make_document(kubernetes={"admins": ["arn:aws-cn:iam::111122223333:role/A"]}),
        "kubernetes.admins[0]: a role outside partition aws of us-west-2, "
        "got 'arn:aws-cn:iam::111122223333:role/A'; write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    "admin in digits of another script": (
        make_document(kubernetes={"admins": [f"arn:aws:iam::{ARABIC}:role/A"]}),
        f"kubernetes.admins[0]: not the ARN of an IAM role, got 'arn:aws:iam::{ARABIC}:role/A'; "
        "write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    "admin of no account": (
        make_document(kubernetes={"admins": ["arn:aws:iam::000000000000:role/A"]}),
        "kubernetes.admins[0]: not the ARN of an IAM role, got 'arn:aws:iam::000000000000:role/A'; "
        "write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    "service-linked role as admin": (
        make_document(kubernetes={"admins": [f"{ROLE}aws-service-role/eks.amazonaws.com/EKS"]}),
        "kubernetes.admins[0]: a service-linked role, which an access entry of EKS cannot be for, "
        f"got '{ROLE}aws-service-role/eks.amazonaws.com/EKS'; name a role that people take on",
    ),
    "role of Identity Center without its path": (
        make_document(kubernetes={"admins": [f"{ROLE}AWSReservedSSO_Admin_0123456789abcdef"]}),
        "kubernetes.admins[0]: a role of IAM Identity Center without its path, "
        f"got '{ROLE}AWSReservedSSO_Admin_0123456789abcdef'; write it with "
        "aws-reserved/sso.amazonaws.com/ before its name, as `aws iam get-role` tells it",
    ),
    "admin twice": (
        make_document(kubernetes={"admins": ["arn:aws:iam::111122223333:role/A"] * 2}),
        "kubernetes.admins[1]: stands in the list twice, "
        "got 'arn:aws:iam::111122223333:role/A'; keep one",
    ),
    "Service range too small": (
        make_document(kubernetes={"service_cidr": "172.20.0.0/25"}),
        "kubernetes.service_cidr: not a size that EKS takes for Services, got '172.20.0.0/25'; "
        "use a mask from /12 to /24",
    ),
    "Service range in public space": (
        make_document(kubernetes={"service_cidr": "8.8.0.0/16"}),
        "kubernetes.service_cidr: not a private range, got '8.8.0.0/16'; "
        "use a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16",
    ),
    "Service range over the VPC's": (
        make_document(kubernetes={"service_cidr": "10.0.0.0/16"}),
        "kubernetes.service_cidr: overlaps the VPC's range 10.0.0.0/16, got '10.0.0.0/16'; "
        "choose a free range",
    ),
    "VPC over the default Service range": (
        with_network(vpc_cidr="172.20.0.0/16"),
        "kubernetes.service_cidr: overlaps the VPC's range 172.20.0.0/16, "
        "got the default 172.20.0.0/16; choose a free range",
    ),
    "API open to everyone": (
        make_document(kubernetes={"endpoint": {"public_cidrs": ["0.0.0.0/0"]}}),
        "kubernetes.endpoint.public_cidrs[0]: opens the Kubernetes API to the whole internet, "
        "got '0.0.0.0/0'; name the networks of your people",
    ),
    "API open to both halves of the internet": (
        make_document(kubernetes={"endpoint": {"public_cidrs": ["0.0.0.0/1", "128.0.0.0/1"]}}),
        "kubernetes.endpoint.public_cidrs[1]: more of the internet than any network has: "
        "/8 at most, got '128.0.0.0/1'; name the networks of your people",
    ),
    "API open to many large networks": (
        make_document(kubernetes={"endpoint": {"public_cidrs": ["3.0.0.0/8", "8.0.0.0/9"]}}),
        "kubernetes.endpoint.public_cidrs: ranges of 25,165,824 addresses together, and no network "
        "has more than 16,777,216; name the networks of your people",
    ),
    **{
        f"API open to {use}": (
            make_document(kubernetes={"endpoint": {"public_cidrs": [block]}}),
            f"kubernetes.endpoint.public_cidrs[0]: a range of {use}, from which nobody comes over "
            f"the internet, got '{block}'; name the public addresses of your people",
        )
        for block, use in {
            "10.1.0.0/16": "private addresses",
            "100.64.0.0/16": "addresses that networks of providers share",
            "127.0.0.1/32": "loopback addresses",
            "169.254.169.254/32": "link-local addresses",
            "224.0.0.0/8": "multicast addresses",
        }.items()
    },
    "API open to more networks than EKS takes": (
        make_document(
            kubernetes={"endpoint": {"public_cidrs": [f"8.8.{each}.0/28" for each in range(41)]}}
        ),
        "kubernetes.endpoint.public_cidrs: more ranges than the 40 that EKS takes, got 41; "
        "join some, or use a VPN",
    ),
    "API open to nobody": (
        make_document(kubernetes={"endpoint": {"private": False}}),
        "kubernetes.endpoint.private: nodes and manifests reach the API server through the private "
        "endpoint, got false; "
        "set private: true",
    ),
    "events kept too short": (
        make_document(kubernetes={"event_ttl": "5m"}),
        "kubernetes.event_ttl: out of EKS's bounds, got '5m'; write 10m to 60m",
    ),
    "events kept for a word": (
        make_document(kubernetes={"event_ttl": "1h"}),
        "kubernetes.event_ttl: not a duration in minutes, got '1h'; write it as 30m",
    ),
    "misspelt add-on": (
        make_document(kubernetes={"addons": {"vpccni": "v1.21.1-eksbuild.1"}}),
        "kubernetes.addons.vpccni: unknown add-on 'vpccni'; did you mean vpc-cni?",
    ),
    "add-on that no cluster has": (
        make_document(
            kubernetes={"addons": {"amazon-sagemaker-hyperpod-inference": "v1.0.0-eksbuild.1"}}
        ),
        "kubernetes.addons.amazon-sagemaker-hyperpod-inference: HyperPod's inference operator, "
        "which cannot run services of this file; write jobs of kind: service, and see "
        "docs/decisions/0011-hyperpod-inference-operator.md",
    ),
    "key of an operator that no cluster has": (
        make_document(hyperpod={"inference_operator": True}),
        "hyperpod.inference_operator: unknown key 'inference_operator'; write jobs of "
        "kind: service, and see docs/decisions/0011-hyperpod-inference-operator.md",
    ),
    "add-on version of another form": (
        make_document(kubernetes={"addons": {"vpc-cni": "1.21.1"}}),
        "kubernetes.addons.vpc-cni: not the version of an EKS add-on, got '1.21.1'; "
        "write it as `aws eks describe-addon-versions` does, such as v1.21.1-eksbuild.1",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)
