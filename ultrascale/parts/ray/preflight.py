"""Check of a running cluster: whether the Kueue of HyperPod's task governance takes jobs of Ray.

Sources:
    https://kueue.sigs.k8s.io/docs/reference/kueue-config.v1beta2/
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html
"""

from collections.abc import Iterator

import yaml

from ultrascale.cluster_api.identity import ClusterArn
from ultrascale.cluster_api.objects import CONFIG_MAP
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import mapping, sequence
from ultrascale.errors import ClusterError
from ultrascale.findings import Finding, Issue, finding
from ultrascale.parts.ray import facts
from ultrascale.parts.ray.model import Plan
from ultrascale.preflight.model import Check, Context

_NAME, _NAMESPACE = "governed-ray", "kueue-system"


def _run(context: Context) -> Iterator[Finding]:
    plan = context.plan
    if plan.part(Plan) is None or not plan.team_namespaces:
        return
    own = ClusterArn(region=plan.region, account=context.account.id, cluster=plan.name)
    wrong, fine = list[Issue](), ""
    try:
        cluster = Cluster.connected()
        if cluster.arn != own:
            raise ClusterError(f"it names {cluster.name or 'no cluster'}, not {plan.name}")
        # The ConfigMap has a name that no page of AWS states.
        kinds = [
            str(kind)
            for found in cluster.collection(CONFIG_MAP, _NAMESPACE, {})
            for text in map(str, mapping(found, "data").values())
            if "integrations:" in text
            for kind in sequence(yaml.safe_load(text), "integrations", "frameworks")
        ]
        fine = "is" if facts.FRAMEWORK in kinds else "is not"
        fine = f"{facts.FRAMEWORK} {fine} one of its Kueue's frameworks: {', '.join(kinds)}"
    except ClusterError as error:
        evidence = f"your kubeconfig does not lead to its Kueue: {error}"
        todo = "run it again with `ultrascale connect` once the cluster is there"
        wrong.append(Issue(state="warn", evidence=evidence, fix=todo))
    yield finding(_NAME, "task governance", wrong, fine=fine)


_TITLE = "the Kueue of task governance knows jobs of Ray"
CHECKS = (Check(name=_NAME, title=_TITLE, actions=(), run=_run, follows="cluster"),)
