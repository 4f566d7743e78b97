"""Certificate of the webhooks' server, which a Job creates.

Upstream makes the certificate in a Helm hook. This Job may be applied repeatedly: it leaves alone a
certificate that is still valid for a year, and its name changes with its pod, because a Job's pod
is immutable.
"""

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.parts.volcano.facts import NAMESPACE
from ultrascale.parts.volcano.model import Plan
from ultrascale_k8s._rbac import rule
from ultrascale_k8s._typed_pods import metadata, resources, restricted_container
from ultrascale_k8s.objects import labels as labels_of
from ultrascale_k8s.volcano.workload import define_account, hardened_pod, tmp_mount

CERTIFICATE_SECRET = "volcano-admission-secret"
_JOB = "volcano-admission-init"
_SECONDS_AFTER_FINISHED = 86_400
_ATTEMPTS = 6

# The image holds openssl and kubectl. The authority's key is thrown away: renewing the certificate
# makes a new authority, which the restarted servers write into the webhook configurations.
SCRIPT = """\
set -eu
cd /tmp
host="$SERVICE.$NAMESPACE.svc"
current=$(kubectl get secret "$SECRET" --namespace="$NAMESPACE" --ignore-not-found \\
  --output=jsonpath='{.data.tls\\.crt}')
if [ -n "$current" ] \\
  && printf %s "$current" | base64 -d | openssl x509 -noout -checkend 31536000; then
  echo "kept $SECRET"
  exit 0
fi
openssl req -x509 -newkey rsa:2048 -nodes -sha256 -days 3650 -subj "/CN=$SERVICE-ca" \\
  -keyout ca.key -out ca.crt
openssl req -newkey rsa:2048 -nodes -sha256 -subj "/CN=$host" -keyout tls.key -out tls.csr
printf '%s\\n' "subjectAltName=DNS:$SERVICE,DNS:$SERVICE.$NAMESPACE,DNS:$host" \\
  'basicConstraints=CA:FALSE' 'keyUsage=digitalSignature,keyEncipherment' \\
  'extendedKeyUsage=serverAuth' > tls.ext
openssl x509 -req -sha256 -days 3650 -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial \\
  -extfile tls.ext -out tls.crt
kubectl create secret generic "$SECRET" --namespace="$NAMESPACE" --dry-run=client --output=yaml \\
  --from-file=ca.crt --from-file=tls.crt --from-file=tls.key > secret.yaml
kubectl apply --server-side --force-conflicts --filename=secret.yaml
if [ -n "$current" ]; then
  kubectl rollout restart "deployment/$DEPLOYMENT" --namespace="$NAMESPACE"
fi
"""


def define_certificate(scope: Construct, plan: Plan, *, service: str, deployment: str) -> None:
    """Define the Job that creates and renews the Secret `CERTIFICATE_SECRET`, and its rights.

    Args:
        scope: The chart.
        plan: The release of Volcano, and the image whose tools the Job uses.
        service: Name of the Service that the certificate is for.
        deployment: Deployment to restart after the certificate is renewed.
    """
    rules = [
        # RBAC cannot restrict `create` by a name: the object has none yet when the right is
        # checked.
        rule("secrets", verbs=("create",)),
        rule("secrets", verbs=("get", "patch"), names=[CERTIFICATE_SECRET]),
        rule("deployments", group="apps", verbs=("get", "patch"), names=[deployment]),
    ]
    define_account(scope, _JOB, own_rules=rules)
    container = _container(plan.webhook_image, service=service, deployment=deployment)
    kube.KubeJob(
        scope,
        _JOB,
        metadata=metadata(
            f"{_JOB}-{plan.version.replace('.', '-')}",
            namespace=NAMESPACE,
            component=_JOB,
        ),
        spec=kube.JobSpec(
            backoff_limit=_ATTEMPTS,
            ttl_seconds_after_finished=_SECONDS_AFTER_FINISHED,
            template=kube.PodTemplateSpec(
                metadata=kube.ObjectMeta(labels=labels_of(_JOB)),
                spec=hardened_pod(container, account=_JOB, restart_policy="Never"),
            ),
        ),
    )


def _container(image: str, *, service: str, deployment: str) -> kube.Container:
    environment = {
        "SERVICE": service,
        "NAMESPACE": NAMESPACE,
        "SECRET": CERTIFICATE_SECRET,
        "DEPLOYMENT": deployment,
        # kubectl keeps its cache in this volume: the root file system is read-only.
        "HOME": "/tmp",
    }
    return kube.Container(
        name="certificate",
        image=image,
        image_pull_policy="IfNotPresent",
        command=["sh", "-c", SCRIPT],
        env=[kube.EnvVar(name=name, value=value) for name, value in environment.items()],
        resources=resources(cpu="50m", memory="64Mi", memory_limit="256Mi"),
        security_context=restricted_container(),
        volume_mounts=[tmp_mount()],
    )
