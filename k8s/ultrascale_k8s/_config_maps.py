"""ConfigMaps that pods mount: never changed, so that no kubelet has to watch them."""

from collections.abc import Mapping
from hashlib import sha256

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale_k8s._pods import labels

_DIGITS = 10


def define_config_map(
    scope: Construct, id: str, *, name: str, namespace: str, component: str, data: Mapping[str, str]
) -> str:
    """Define an immutable ConfigMap, and return its name, which ends in a hash of its data.

    With other data it is another ConfigMap: pods that mount it are made anew, and those that are
    there keep what they were made with. The old ones stay in the cluster.

    Source: https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable

    Args:
        scope: Parent.
        id: Construct id.
        name: What its name begins with.
        namespace: Where it is.
        component: What it belongs to.
        data: Content of each file.
    """
    text = "".join(f"{key}\0{value}\0" for key, value in sorted(data.items()))
    full = f"{name}-{sha256(text.encode()).hexdigest()[:_DIGITS]}"
    kube.KubeConfigMap(
        scope,
        id,
        metadata=kube.ObjectMeta(name=full, namespace=namespace, labels=labels(component)),
        data=dict(data),
        immutable=True,
    )
    return full
