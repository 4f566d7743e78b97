"""A worker of torchrun that joins the others by gloo, and lists the nodes of all ranks.

Usage: python -m tests.support.gathering_worker FILE
"""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import json
import os
import sys
from pathlib import Path

import torch.distributed as dist


def main(file: Path) -> None:
    dist.init_process_group("gloo")
    nodes: list[str | None] = [None] * dist.get_world_size()
    dist.all_gather_object(nodes, os.environ["NODE"])
    if dist.get_rank() == 0:
        file.write_text(json.dumps(nodes))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
