"""Errors of an app that the `torchx` command line prints without a traceback.

`torchx run` prints one class of errors without a traceback. `status`, `list`, `log` and `cancel`
print every error with a traceback, unless the error itself ends the process.
"""

import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from torchx.specs.finder import ComponentValidationException

from ultrascale.errors import UltrascaleError

# TorchX passes these commands no options; it reads options from its file.
_IN_TORCHX = {name: f"`{name}` in .torchxconfig" for name in ("kubeconfig", "context")}


class AppError(UltrascaleError, ComponentValidationException, SystemExit):
    """Error: an app cannot be run; carries one line for each mistake, all of them at once.

    ``except Exception`` catches the error. Uncaught, it ends the process with its lines on standard
    error, and status 1.
    """

    def __init__(self, mistakes: Iterable[str]) -> None:
        # Lines of the form ``key: what is wrong, got VALUE; what to do``
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))
        self.code = str(self)


@contextmanager
def told() -> Generator[None]:
    """Raise every error that a user can cause as an `AppError` within a ``with`` block."""
    try:
        yield
    except AppError:
        raise
    except UltrascaleError as error:
        _leave_to_process()
        text = str(error)
        for name, key in _IN_TORCHX.items():
            text = text.replace(f"--{name}", key)
        raise AppError(text.splitlines()) from error


def _leave_to_process() -> None:
    """Let the process report an `AppError` of a thread of `torchx log`.

    That command reads each pod in a thread. It raises an error in the thread, with a traceback, and
    again in the process.
    """
    if threading.current_thread().name.endswith("(print_log_lines)"):
        threading.excepthook = _hook


def _hook(args: threading.ExceptHookArgs) -> None:
    if not issubclass(args.exc_type, AppError):
        threading.__excepthook__(args)
