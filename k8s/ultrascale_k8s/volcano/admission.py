"""Admission: vc-webhook-manager, its certificate, and the webhooks, applied last."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.documents import Json, JsonObject, mapping, objects, text
from ultrascale.parts.volcano.facts import NAMESPACE
from ultrascale.parts.volcano.model import Plan
from ultrascale_k8s._platform_chart import define_object, define_objects
from ultrascale_k8s._rbac import rule
from ultrascale_k8s._typed_pods import metadata, planned_resources, resources, restricted_container
from ultrascale_k8s.objects import config_map, labels, name_of
from ultrascale_k8s.upstream import upstream_objects, upstream_rules
from ultrascale_k8s.volcano.workload import (
    ROLES,
    Probes,
    Program,
    config_map_volume,
    define_account,
    define_program,
    define_service,
    hardened_pod,
    tmp_mount,
)

# --- Certificate of the webhooks' server, which a Job creates -------------------------------------
# Upstream makes the certificate in a Helm hook. This Job may be applied repeatedly: it leaves alone
# a certificate that is still valid for a year, and its name changes with its pod, because a Job's
# pod is immutable.


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
                metadata=kube.ObjectMeta(labels=labels(_JOB)),
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


# --- vc-webhook-manager, the server of Volcano's admission webhooks -------------------------------


# --- Admission webhooks, applied last -------------------------------------------------------------
# A webhook that is registered but not served refuses every object it is asked about. Applied after
# the queues, the first deploy never depends on one.


ADMISSION = "volcano-admission"
ADMISSION_SERVICE = "volcano-admission-service"
ADMISSION_SERVICE_PORT = 443

# Volcano makes HyperNodes itself, and never tries again after a refusal. The webhook judges only
# the regular expressions of HyperNodes, and HyperNodes of Volcano have none.
_OF_HYPER_NODES: JsonObject = {"failurePolicy": "Ignore", "timeoutSeconds": 2}


class VolcanoWebhooksChart(cdk8s.Chart):
    """Defines the configurations of Volcano's admission webhooks.

    They have no `caBundle`: the server writes its own into them, and applying them again does not
    change a field that they do not set.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_objects(self, webhook_configurations())


def webhook_configurations() -> Sequence[JsonObject]:
    """Return the configurations, each with one webhook.

    The server derives their names from the webhooks' paths, and looks the configurations up.

    Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/webhook-manager/app/util.go
    """
    return [
        {
            **configuration,
            "metadata": {**mapping(configuration, "metadata"), "labels": labels(ADMISSION)},
            "webhooks": [
                {**webhook, **(_OF_HYPER_NODES if "hypernodes" in name else {})}
                for webhook in objects(configuration, "webhooks")
            ],
        }
        for name, configuration in upstream_objects("volcano-webhooks").items()
    ]


def webhook_paths() -> Sequence[str]:
    """Return the webhooks' paths on the server, by which `--enabled-admission` names them."""
    return [
        text(webhook, "clientConfig", "service", "path")
        for configuration in webhook_configurations()
        for webhook in objects(configuration, "webhooks")
    ]


_CONFIG_MAP = "volcano-admission-configmap"
_CONFIG_KEY = "volcano-admission.conf"
_CONFIG_PATH = "/admission.local.config/configmap"
_CERTIFICATE_PATH = "/admission.local.config/certificates"
_PORT = 8443
# The server answers only after it has found every webhook configuration and written its certificate
# into it; it waits five minutes for each, then exits and starts again.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/webhook-manager/app/util.go
_STARTUP_PERIOD_SECONDS = 10
_STARTUP_FAILURES = 240
# Seconds during which the Service may still send requests to a pod that is ending.
_DRAIN_SECONDS = 5


def define_admission(scope: Construct, plan: Plan) -> None:
    """Define the webhooks' server, its certificate, its rights and its Service."""
    define_account(scope, ADMISSION, rules=_rules())
    define_certificate(scope, plan, service=ADMISSION_SERVICE, deployment=ADMISSION)
    config = config_map(
        _CONFIG_MAP,
        namespace=NAMESPACE,
        component=ADMISSION,
        # Empty: resource groups would rewrite pods, whose webhooks are off.
        data={_CONFIG_KEY: "resourceGroups: []\n"},
    )
    define_object(scope, _CONFIG_MAP, config)
    define_program(scope, _program(plan, name_of(config)))
    port = {"name": "https", "port": ADMISSION_SERVICE_PORT, "targetPort": "https"}
    define_service(scope, ADMISSION_SERVICE, ADMISSION, port, served=_PORT)


def _rules() -> list[Json]:
    """Return the rights of the server, which writes its certificate into the webhooks."""
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    group, names = "admissionregistration.k8s.io", [*map(name_of, webhook_configurations())]
    return [
        *upstream_rules(ROLES, ADMISSION),
        rule(*kinds, group=group, verbs=("update", "patch"), names=names),
        rule("events", verbs=("create", "patch")),
    ]


def _program(plan: Plan, config: str) -> Program:
    listening = kube.TcpSocketAction(port=kube.IntOrString.from_number(_PORT))
    certificate = kube.Volume(
        name="certificate", secret=kube.SecretVolumeSource(secret_name=CERTIFICATE_SECRET)
    )
    return Program(
        name=ADMISSION,
        image=plan.webhook_image,
        replicas=plan.scale.webhook_replicas,
        args=_arguments(),
        resources=planned_resources(plan.scale.webhooks),
        ports={"https": _PORT},
        probes=Probes(
            startup=kube.Probe(
                tcp_socket=listening,
                period_seconds=_STARTUP_PERIOD_SECONDS,
                failure_threshold=_STARTUP_FAILURES,
            ),
            liveness=kube.Probe(tcp_socket=listening, failure_threshold=5),
            readiness=kube.Probe(tcp_socket=listening, period_seconds=5),
        ),
        mounts={_CERTIFICATE_PATH: certificate, _CONFIG_PATH: config_map_volume(config)},
        pre_stop=("sleep", str(_DRAIN_SECONDS)),
    )


def _arguments() -> tuple[str, ...]:
    """Return the command line of the server.

    Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/webhook-manager/app/options/options.go
    """
    return (
        f"--enabled-admission={','.join(webhook_paths())}",
        f"--tls-cert-file={_CERTIFICATE_PATH}/tls.crt",
        f"--tls-private-key-file={_CERTIFICATE_PATH}/tls.key",
        f"--ca-cert-file={_CERTIFICATE_PATH}/ca.crt",
        f"--admission-conf={_CONFIG_PATH}/{_CONFIG_KEY}",
        f"--webhook-namespace={NAMESPACE}",
        f"--webhook-service-name={ADMISSION_SERVICE}",
        "--enable-healthz=true",
        f"--port={_PORT}",
        "-v=3",
    )
