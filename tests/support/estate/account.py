"""A cluster in an account that keeps its state: what a teardown finds, deletes and leaves.

Stacks, resources and a few services behave as AWS documents; each deletion takes one more look. A
test says what fails.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from tests.support.estate.doubles import FakeClock, FakeStack, KilledError, described, summary
from tests.support.estate.services import EstateAws, InMemory, tagged
from tests.support.fake_aws import ARN, ID, Refusal, Told, denied
from tests.support.stub_api_server import StubApiServer
from ultrascale.account import Account
from ultrascale.cluster_api.server import Cluster
from ultrascale.plan import ClusterPlan
from ultrascale.plan.names import stack_description
from ultrascale.teardown.clusters import eks_status
from ultrascale.teardown.kept import Asked
from ultrascale.teardown.model import Scope, Teardown
from ultrascale.teardown.plan import plan_teardown, read_findings
from ultrascale.teardown.runner import Journal, Runner

VPC = "vpc-0a1"
Query = dict[str, Any]


class Estate:
    """The account."""

    def __init__(self, plan: ClusterPlan, *stacks: FakeStack) -> None:
        self.plan = plan
        self.stacks = {stack.name: stack for stack in stacks}  # Its stacks
        # What was deleted by a request, in order: names of stacks, ids of other things
        self.deleted: list[str] = []
        self.api = StubApiServer()  # Its API server
        self.api.groups |= {"/apis/karpenter.sh/v1"}
        # Number of the request at which the process is killed; None lets it live
        self.kill_request: int | None = None
        # Number of the request that changes something at which the process is killed; None lets it
        # live
        self.kill_at: int | None = None
        self.kill_after = False  # Whether that request is carried out
        self.requests = 0
        self.refused = ""  # What nobody may delete, by its id
        self.changes = 0
        self.cluster: dict[str, Any] | None = {"status": "ACTIVE", "deletionProtection": True}
        self.hyperpod: list[str] | None = None
        self.hyperpod_nodes: list[list[str]] = []
        self.instances: dict[str, dict[str, Any]] = {}
        self.interfaces: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, dict[str, Any]] = {}
        self.file_systems: dict[str, dict[str, Any]] = {}
        self.log_groups: set[str] = set()
        self.repositories: set[str] = set()
        self.buckets: dict[str, list[str]] = {}
        self.listed: set[str] = set()  # What lists were
        self.backups: list[dict[str, Any]] = []
        self.tagged: dict[str, list[dict[str, str]]] = {}
        self.answers: dict[str, Told] = self._answers()
        self.aws = EstateAws(self)  # Its services
        self.account = Account(id=ID, arn=ARN, region=plan.region, session=self.aws)

    def requested(self) -> None:
        """Count a request, whatever it asks; kill the process where that is due."""
        self.requests += 1
        if self.requests == self.kill_request:
            raise KilledError

    def changing(self, id: str) -> None:
        """Count a request that changes something; refuse it, or kill the process, where due."""
        if id == self.refused:
            raise denied("some:Deletion")
        self.changes += 1
        if self.changes == self.kill_at and not self.kill_after:
            raise KilledError

    def changed(self) -> None:
        """Kill the process where what it has just asked for is done, and it knows nothing of it."""
        if self.kill_after and self.changes == self.kill_at:
            self.kill_at = None
            raise KilledError

    # What a test does.

    @property
    def scope(self) -> Scope:
        return Scope(account=self.account, plan=self.plan)

    def reach(self) -> Cluster:
        return Cluster(cast("Any", InMemory(self)), "")

    def planned(self, asked: Asked | None = None) -> Teardown:
        status = eks_status(self.account, self.plan.name)
        api = self.reach() if status else None
        return plan_teardown(self.scope, read_findings(self.scope, api, status), asked or Asked())

    def run(
        self, folder: Path, asked: Asked | None = None, clock: FakeClock | None = None
    ) -> Teardown:
        teardown = self.planned(asked)
        self.carry_out(teardown, folder, clock)
        return teardown

    def carry_out(self, teardown: Teardown, folder: Path, clock: FakeClock | None = None) -> None:
        clock = clock or FakeClock()
        journal = Journal.opened(folder / "journal.jsonl", clock)
        Runner(clock=clock, journal=journal, tell=lambda _: None).run(teardown)

    # What AWS answers.

    def _answers(self) -> dict[str, Told]:
        return {
            "cloudformation:DescribeStacks": self._describe,
            "cloudformation:ListStacks": self._list,
            "cloudformation:ListStackResources": self._resources,
            "cloudformation:GetTemplate": self._template,
            "cloudformation:DescribeStackResources": self._holder,
            "cloudformation:DeleteStack": self._delete,
            "cloudformation:DescribeStackEvents": lambda asked: {
                "StackEvents": self._named(asked).events
            },
            "eks:DescribeCluster": self._eks,
            "eks:UpdateClusterConfig": self._unprotect,
            "sagemaker:DescribeCluster": self._hyperpod,
            "sagemaker:ListClusterNodes": self._hyperpod_nodes,
            "sagemaker:DescribeTrainingPlan": Refusal("ResourceNotFound"),
            "ec2:DescribeInstances": lambda asked: {
                "Reservations": [{"Instances": tagged(self.instances, asked)}]
            },
            "ec2:DescribeNetworkInterfaces": self._interfaces,
            "ec2:DeleteNetworkInterface": self._delete_interface,
            "ec2:DescribeSecurityGroups": self._groups,
            "ec2:DeleteSecurityGroup": self._delete_group,
            "ec2:DescribeVolumes": self._volumes,
            "ec2:DescribeSnapshots": {"Snapshots": []},
            "ec2:DescribeVpcEndpoints": {"VpcEndpoints": []},
            "ec2:DescribeAddresses": {"Addresses": []},
            "ec2:DescribeLaunchTemplates": {"LaunchTemplates": []},
            "fsx:DescribeFileSystems": self._file_systems,
            "fsx:DeleteFileSystem": self._delete_file_system,
            "logs:DescribeLogGroups": lambda asked: {
                "logGroups": [
                    {"logGroupName": each}
                    for each in sorted(self.log_groups)
                    if each.startswith(asked["logGroupNamePrefix"])
                ]
            },
            "logs:DeleteLogGroup": self._delete_log_group,
            "ecr:DescribeRepositories": self._repositories,
            "ecr:DeleteRepository": self._delete_repository,
            "kms:DescribeKey": lambda asked: {
                "KeyMetadata": {"KeyId": asked["KeyId"], "KeyState": "Enabled"}
            },
            "s3:GetBucketLocation": self._bucket,
            "s3:ListObjectVersions": self._versions,
            "s3:DeleteObjects": self._delete_objects,
            "s3:DeleteBucket": self._delete_bucket,
            "iam:ListInstanceProfiles": {"InstanceProfiles": []},
            "autoscaling:DescribeAutoScalingGroups": {"AutoScalingGroups": []},
            "fsx:DescribeBackups": lambda _: {"Backups": [*self.backups]},
            "tag:GetResources": self._tagged,
        }

    def _named(self, asked: Query) -> FakeStack:
        for stack in self.stacks.values():
            if asked["StackName"] == stack.id or (asked["StackName"] == stack.name and stack.live):
                return stack
        raise Refusal("ValidationError", f"Stack with id {asked['StackName']} does not exist")

    def _describe(self, asked: Query) -> Mapping[str, Any]:
        if "StackName" not in asked:
            return {"Stacks": [described(each) for each in self.stacks.values() if each.live]}
        stack = self._named(asked)
        answer = {"Stacks": [described(stack)]}
        if stack.status == "DELETE_IN_PROGRESS":
            stack.looks -= 1
            if not stack.looks:
                self._end(stack)
        return answer

    def _end(self, stack: FakeStack) -> None:
        """Let a deletion end."""
        importers = [s.name for s in self.stacks.values() if s.live and stack.name in s.imports]
        protected = self.cluster is not None and self.cluster["deletionProtection"]
        holds_cluster = any(each[0] == "AWS::EKS::Cluster" for each in stack.resources)
        if stack.stuck or importers or (holds_cluster and protected):
            stack.status, stack.looks = "DELETE_FAILED", 1
            for type, logical, id, _ in stack.resources:
                if logical == stack.cancelled:
                    stack.tell(logical, type, id, "DELETE_FAILED", "Resource deletion cancelled")
                if stack.stuck and logical == stack.stuck[0]:
                    stack.tell(logical, type, id, "DELETE_FAILED", stack.stuck[1])
            reason = f"Export is in use by {importers}" if importers else "some failed to delete"
            stack.tell(stack.name, "AWS::CloudFormation::Stack", stack.id, stack.status, reason)
            return
        stack.status = "DELETE_COMPLETE"
        if holds_cluster:
            self.cluster = None
        for instance in [*self.instances]:
            if self.instances[instance]["Stack"] == stack.name:
                del self.instances[instance]
        if stack.name.endswith("-hyperpod-groups"):
            self.hyperpod = None

    def _list(self, _: Query) -> Mapping[str, Any]:
        gone = [each for each in self.stacks.values() if not each.live]
        said = [{"TemplateDescription": stack_description(each.cluster)} for each in gone]
        return {"StackSummaries": [summary(s) | told for s, told in zip(gone, said, strict=True)]}

    def _resources(self, asked: Query) -> Mapping[str, Any]:
        stack = self._named(asked)
        return {
            "StackResourceSummaries": [
                {
                    "ResourceType": type,
                    "LogicalResourceId": logical,
                    "PhysicalResourceId": id,
                    "LastUpdatedTimestamp": datetime(2026, 12, 1, tzinfo=UTC),
                    "ResourceStatus": "CREATE_COMPLETE"
                    if stack.live
                    else ("DELETE_SKIPPED" if retained else "DELETE_COMPLETE"),
                }
                for type, logical, id, retained in stack.resources
            ]
        }

    def _holder(self, asked: Query) -> Mapping[str, Any]:
        """Return what the stack holds that holds a resource, or held it 90 days ago or later."""
        id = asked["PhysicalResourceId"]
        for stack in sorted(self.stacks.values(), key=lambda each: not each.live):
            if any(id == each[2] for each in stack.resources):
                held = self._resources({"StackName": stack.id})["StackResourceSummaries"]
                for each in held:
                    each |= {"StackName": stack.name, "Timestamp": each["LastUpdatedTimestamp"]}
                    del each["LastUpdatedTimestamp"]
                return {"StackResources": held}
        raise Refusal("ValidationError", f"Stack for {id} does not exist")

    def _template(self, asked: Query) -> Mapping[str, Any]:
        stack = self._named(asked)
        resources: dict[str, Any] = {
            logical: {"Type": type} | ({"DeletionPolicy": "Retain"} if retained else {})
            for type, logical, _, retained in stack.resources
        }
        return {"TemplateBody": json.dumps({"Resources": resources})}

    def _delete(self, asked: Query) -> Mapping[str, Any]:
        stack = self._named(asked)
        self.changing(stack.name)
        if stack.status != "DELETE_IN_PROGRESS":
            self.deleted.append(stack.name)
            stack.status = "DELETE_IN_PROGRESS"
            stack.tell(stack.name, "AWS::CloudFormation::Stack", stack.id, "DELETE_IN_PROGRESS")
        return {}

    def _eks(self, _: Query) -> Mapping[str, Any]:
        if self.cluster is None:
            raise Refusal("ResourceNotFoundException")
        answer = {"cluster": dict(self.cluster)}
        self.cluster["status"] = "ACTIVE"
        return answer

    def _unprotect(self, asked: Query) -> Mapping[str, Any]:
        self.changing("deletion protection")
        assert self.cluster is not None
        self.cluster |= {"deletionProtection": asked["deletionProtection"], "status": "UPDATING"}
        self.deleted.append("deletion protection")
        return {}

    def _hyperpod(self, _: Query) -> Mapping[str, Any]:
        if self.hyperpod is None:
            raise Refusal("ResourceNotFound")
        status = self.hyperpod.pop(0) if len(self.hyperpod) > 1 else self.hyperpod[0]
        return {"ClusterArn": "arn:x", "ClusterStatus": status, "InstanceGroups": []}

    def _hyperpod_nodes(self, _: Query) -> Mapping[str, Any]:
        nodes = self.hyperpod_nodes.pop(0) if self.hyperpod_nodes else []
        return {
            "NextToken": "",
            "ClusterNodeSummaries": [
                {
                    "InstanceGroupName": "hp",
                    "InstanceId": f"i-{number}",
                    "InstanceType": "ml.p5.48xlarge",
                    "LaunchTime": datetime(2026, 12, 1, tzinfo=UTC),
                    "InstanceStatus": {"Status": status},
                }
                for number, status in enumerate(nodes)
            ],
        }

    def _interfaces(self, asked: Query) -> Mapping[str, Any]:
        if ids := asked.get("NetworkInterfaceIds"):
            if ids[0] not in self.interfaces:
                raise Refusal("InvalidNetworkInterfaceID.NotFound")
            return {"NetworkInterfaces": [self.interfaces[ids[0]]]}
        return {"NetworkInterfaces": tagged(self.interfaces, asked)}

    def _delete_interface(self, asked: Query) -> Mapping[str, Any]:
        return self._drop(self.interfaces, asked["NetworkInterfaceId"])

    def _groups(self, asked: Query) -> Mapping[str, Any]:
        if ids := asked.get("GroupIds"):
            if ids[0] not in self.groups:
                raise Refusal("InvalidGroup.NotFound")
            return {"SecurityGroups": [self.groups[ids[0]]]}
        return {"SecurityGroups": tagged(self.groups, asked)}

    def _volumes(self, asked: Query) -> Mapping[str, Any]:
        """Return the volumes that the driver has not deleted; it tags none with the cluster."""
        held = {each["spec"]["csi"]["volumeHandle"] for each in self._kubernetes_volumes()}
        named = [each["Values"] for each in asked.get("Filters", []) if each["Name"] == "volume-id"]
        if named:
            volume = {"VolumeType": "gp3", "Size": 100}
            return {"Volumes": [{"VolumeId": id, **volume} for id in named[0] if id in held]}
        wanted = asked.get("VolumeIds", [])
        if not set(wanted) <= held:
            raise Refusal("InvalidVolume.NotFound")
        return {"Volumes": [{"VolumeId": each} for each in wanted]}

    def _kubernetes_volumes(self) -> list[dict[str, Any]]:
        paths = [each for each in self.api.paths() if "/persistentvolumes/" in each]
        return [each for path in paths if (each := self.api.find(path)) is not None]

    def _delete_group(self, asked: Query) -> Mapping[str, Any]:
        # The file systems of the cluster have the group, those of others have their own.
        own = f"{self.plan.name}-storage"
        tags = (tag for each in self.file_systems.values() for tag in each["Tags"])
        if any(tag["Value"] == own for tag in tags):
            raise Refusal("DependencyViolation")
        return self._drop(self.groups, asked["GroupId"])

    def _tagged(self, asked: Query) -> Mapping[str, Any]:
        """Return what has the tag; one whose resource is gone, too, as AWS does for a while."""
        (wanted,) = asked["TagFilters"]
        return {
            "ResourceTagMappingList": [
                {"ResourceARN": arn, "Tags": tags}
                for arn, tags in self.tagged.items()
                for tag in tags
                if tag["Key"] == wanted["Key"]
                and tag["Value"] in wanted.get("Values", [tag["Value"]])
            ]
        }

    def _file_systems(self, asked: Query) -> Mapping[str, Any]:
        wanted = asked.get("FileSystemIds", [*self.file_systems])
        if not self.file_systems.keys() >= set(wanted):
            raise Refusal("FileSystemNotFound")
        return {"FileSystems": [self.file_systems[each] for each in wanted]}

    def _delete_file_system(self, asked: Query) -> Mapping[str, Any]:
        return self._drop(self.file_systems, asked["FileSystemId"])

    def _drop(self, things: dict[str, Any], id: str) -> Mapping[str, Any]:
        self.changing(id)
        del things[id]
        self.deleted.append(id)
        return {}

    def _delete_log_group(self, asked: Query) -> Mapping[str, Any]:
        self.changing(asked["logGroupName"])
        self.log_groups.remove(asked["logGroupName"])
        self.deleted.append(asked["logGroupName"])
        return {}

    def _repositories(self, asked: Query) -> Mapping[str, Any]:
        wanted = set(asked.get("repositoryNames", self.repositories))
        if not wanted <= self.repositories:
            raise Refusal("RepositoryNotFoundException")
        return {"repositories": [{"repositoryName": each} for each in sorted(wanted)]}

    def _delete_repository(self, asked: Query) -> Mapping[str, Any]:
        self.changing(asked["repositoryName"])
        self.repositories.remove(asked["repositoryName"])
        self.deleted.append(asked["repositoryName"])
        return {}

    def _bucket(self, asked: Query) -> Mapping[str, Any]:
        if asked["Bucket"] not in self.buckets:
            raise Refusal("NoSuchBucket")
        return {}

    def _versions(self, asked: Query) -> Mapping[str, Any]:
        found = self.buckets[asked["Bucket"]][:2]
        return {"Versions": [{"Key": each, "VersionId": "1"} for each in found]}

    def _delete_objects(self, asked: Query) -> Mapping[str, Any]:
        self.changing(asked["Bucket"])
        for each in asked["Delete"]["Objects"]:
            self.buckets[asked["Bucket"]].remove(each["Key"])
        return {}

    def _delete_bucket(self, asked: Query) -> Mapping[str, Any]:
        assert not self.buckets[asked["Bucket"]]
        return self._drop(self.buckets, asked["Bucket"])
