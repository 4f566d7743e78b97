"""Checks of the nodes of a Capacity Block, cell by cell of the matrix."""

from tests.support.assembly import Assembly
from tests.support.cell_parts import schedules, spec, the


def looked_after(assembly: Assembly, stack: str, size: int) -> None:
    """Each minute, and at each deploy, the function makes up for what a schedule missed."""
    operation, calendar = schedules(assembly, stack)["rate(1 minute)"]
    assert operation == "the function"
    for each in (calendar, the(assembly, stack, "Custom::BlockCalendar")):
        assert each["Size"] == str(size)


def managed_at_the_start(assembly: Assembly, stack: str) -> None:
    assert the(assembly, stack, "Custom::NodeGroupSize")["InitialSize"] == 0
    operation, request = schedules(assembly, stack)["cron(30 11 3 12 ? *)"]
    assert operation == "eks:updateNodegroupConfig"
    assert request["ScalingConfig"] == {"DesiredSize": 16}
    looked_after(assembly, stack, 16)


def group_at_the_start(assembly: Assembly, stack: str) -> None:
    assert the(assembly, stack, "AWS::AutoScaling::AutoScalingGroup")["MinSize"] == "0"
    operation, request = schedules(assembly, stack)["cron(30 11 5 12 ? *)"]
    assert operation == "autoscaling:setDesiredCapacity"
    assert request["DesiredCapacity"] == 8
    looked_after(assembly, stack, 8)


def scaled_in_by_eks(assembly: Assembly, stack: str) -> None:
    """EKS adds an action of its own to a group of this type; a second one would only race it."""
    assert the(assembly, stack, "AWS::EKS::Nodegroup")["CapacityType"] == "CAPACITY_BLOCK"
    assert set(schedules(assembly, stack)) == {"cron(30 11 3 12 ? *)", "rate(1 minute)"}


def kept_full_inside_the_window(assembly: Assembly, name: str) -> None:
    """No node until the reservation is active: then the function sets the count, each minute."""
    assert spec(assembly, "NodePool", name)["replicas"] == 0
    operation, calendar = schedules(assembly, "node-pools")["rate(1 minute)"]
    assert operation == "the function"
    assert calendar["Target"]["Name"] == name
    assert int(calendar["Size"]) == int(spec(assembly, "NodePool", name)["limits"]["nodes"])
    assert assembly.find("ClusterRole", f"ultrascale:block-calendar:{name}")


def emptied_before_ec2_reclaims(assembly: Assembly, name: str) -> None:
    """The pods have ten minutes, in which no disruption budget of theirs holds a node."""
    calendar = the(assembly, "node-pools", "Custom::BlockCalendar")["Window"]
    assert calendar["UsableUntil"] < calendar["ReclaimedFrom"] < calendar["Ends"]
    template = spec(assembly, "NodePool", name)["template"]["spec"]
    assert template["terminationGracePeriod"] == "10m"
