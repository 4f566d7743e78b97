"""PyTorch on Trainium nodes: the component of AWS's tutorial, with its parameters.

`lib/trn1_dist_ddp.py`, as the tutorial's repository calls it, is a copy: CodePipeline keeps no
links.

Source: https://github.com/aws-neuron/aws-neuron-eks-samples/tree/master/dp_bert_hf_pretrain
"""

from torchx.specs import AppDef

from ultrascale_torchx.components import Launch, ddp


def generateAppDef(  # noqa: N802
    name: str,
    script: str,
    image: str,
    script_args: str = "",
    nnodes: int = 1,
    min_nnodes: int = 0,
    nproc_per_node: int = 0,
    instance_type: str = "trn1.32xlarge",
    bf16: str = "False",
    cacheset: str = "",
    precompile: str = "False",
    max_retries: int = -1,
    rdzv_backend: str = "",
    env: dict[str, str] | None = None,
) -> AppDef:
    """Train with one process for each NeuronCore of the nodes.

    Args:
        name: name of the job
        script: path of the script in the image, or name of a module, such as
            ultrascale_bert.pretrain
        image: :TAG of the run option image_repo, a whole reference, or REPOSITORY:TAG of the
            cluster file's images.repositories
        script_args: arguments of the script, in one word: --script_args "--batch_size 16"
        nnodes: nodes
        min_nnodes: fewest nodes that the job goes on with; 0: all of them
        nproc_per_node: processes on a node; 0: one for each NeuronCore
        instance_type: EC2 instance type of the nodes, which a pool of the cluster file has
        bf16: True or False, whether to train in bf16: programs of ours get --bf16,
            others, which cast their model themselves, stochastic rounding
        cacheset: name of the model's compiled graphs in the shared cache; empty: none are kept,
            and graphs are compiled as they are met
        precompile: True or False, whether to run only to compile the graphs into the cache
        max_retries: restarts of the whole job; negative: 10, and 100 on Spot nodes
        rdzv_backend: where the nodes meet: c10d, etcd or etcd-v2; empty: as the cluster file says
        env: environment variables, as K=V,K=V
    """
    launch = Launch(
        name=name,
        script=script,
        script_args=script_args,
        image=image,
        nnodes=nnodes,
        min_nnodes=min_nnodes,
        nproc_per_node=nproc_per_node,
        instance_type=instance_type,
        bf16=bf16,
        max_retries=max_retries,
        rdzv_backend=rdzv_backend,
        env=env or {},
        cacheset=cacheset,
        precompile=precompile,
    )
    return ddp(launch, "neuron")
