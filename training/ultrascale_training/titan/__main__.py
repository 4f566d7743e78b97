"""Entry point of ``python -m ultrascale_training.titan``."""

import logging
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from ultrascale_training import process_groups, vote
from ultrascale_training.failures import FailureLog
from ultrascale_training.hangs import keep_state, report_hang
from ultrascale_training.launch import note_stop
from ultrascale_training.stop import STOPPED_EARLY, StopRequest
from ultrascale_training.titan import arguments as command_line

# Time for the first step, in which a large model is compiled.
_TIMEOUT = timedelta(minutes=30)


@record
def main(failures: FailureLog | None = None) -> int:
    """Run the program on this worker, and return its exit status.

    Args:
        failures: Failure log, which gets the place of the output.
    """
    failures = failures or FailureLog()
    stop = StopRequest()
    arguments = command_line.parse()
    failures.output = arguments.output_dir
    failures.tell_earlier()
    process_groups.connect_on_demand()
    # Imported late: the import takes ten seconds, and a mistake in the command line needs none of
    # it.
    from ultrascale_training.titan.configuration import configuration

    trainer = configuration(arguments).build()
    ballot = vote.join(
        _TIMEOUT,
        on_hang=lambda hang: report_hang(hang, failures, trainer.reports.progress),
        on_asked=lambda suspected: keep_state(failures, suspected=suspected),
        on_lost=failures.lost,
    )
    status = trainer.run(ballot, lambda: stop.requested, most=arguments.steps_this_run)
    ballot.close()
    if arguments.export is not None and not status:
        trainer.saves.export(Path(arguments.export))
    trainer.close()
    if status == STOPPED_EARLY:
        note_stop()
    dist.destroy_process_group()
    return status


if __name__ == "__main__":
    rank = os.environ.get("RANK", "0")
    # TorchTitan logs the same lines on each of thousands of workers.
    level = logging.INFO if rank == "0" else logging.WARNING
    logging.basicConfig(format=f"%(asctime)s worker {rank}: %(message)s", level=level)
    log = FailureLog()
    sys.excepthook = log.leave
    sys.exit(main(log))
