"""Entry point of ``python -m ultrascale_training.titan``."""

import logging
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from ultrascale_training.devices import host_group
from ultrascale_training.errors import TrainingError
from ultrascale_training.stop import StopRequest
from ultrascale_training.titan import arguments as command_line

_TIMEOUT = timedelta(minutes=10)


@record
def main() -> int:
    """Run the program on this worker and return its exit status."""
    stop = StopRequest()
    arguments = command_line.parse()
    # Its import takes ten seconds, and a mistake in the command line needs none of it.
    from torchtitan.tools.logging import init_logger

    from ultrascale_training.titan.configuration import configuration

    init_logger()
    trainer = configuration(arguments).build()
    if arguments.recipe.evaluate:
        trainer.evaluate()
        return _closed(trainer, 0)
    control = host_group(_TIMEOUT)

    def vote(wish: bool) -> bool:
        ballot = torch.tensor([int(wish)])
        dist.all_reduce(ballot, group=control)
        return int(ballot) > 0

    status = trainer.run(vote, lambda: stop.requested)
    if arguments.export is not None and not status:
        trainer.saves.export(arguments.export)
    return _closed(trainer, status)


def _closed(trainer: "UltrascaleTrainer", status: int) -> int:
    trainer.close()
    dist.destroy_process_group()
    return status


if __name__ == "__main__":
    logging.basicConfig(
        format=f"%(asctime)s worker {os.environ.get('RANK', '0')}: %(message)s", level=logging.INFO
    )
    try:
        sys.exit(main())
    except TrainingError as mistake:
        print(mistake, file=sys.stderr)
        sys.exit(2)
