"""A program called `torchrun` that is forked, for commands of jobs that begin it by its name."""

import json
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from tests.support import forked

# It has the arguments, environment and signals of the real one, whose output goes beside it.
_STAND_IN = """#!{python} -IS
import json, os, signal, socket, sys
meeting = socket.create_connection(("127.0.0.1", {port}))
meeting.sendall(json.dumps([sys.argv[1:], dict(os.environ)]).encode() + b"\\n")
told = meeting.makefile()
process = int(told.readline())
signal.signal(signal.SIGTERM, lambda number, _: os.kill(process, number))
sys.exit(int(told.readline()))
"""


@contextmanager
def forked_torchrun(folder: Path) -> Generator[Path]:
    """Yield a folder with such a program, whose output is in the file `log-torchrun` there."""
    running: list[forked.Program] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = folder / "torchrun"
        program.write_text(_STAND_IN.format(python=sys.executable, port=server.getsockname()[1]))
        program.chmod(0o755)
        Thread(target=_serve, args=(server, folder / "log-torchrun", running)).start()
        try:
            yield folder
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for each in running:
                each.kill()


def _serve(server: socket.socket, output: Path, running: list[forked.Program]) -> None:
    while True:
        try:
            asked, _ = server.accept()
        except OSError:
            return
        Thread(target=_answer, args=(asked, output, running)).start()


def _answer(asked: socket.socket, output: Path, running: list[forked.Program]) -> None:
    with asked, asked.makefile("rw") as said:
        arguments, environment = json.loads(said.readline())
        module = "torch.distributed.run"
        program = forked.start(module, arguments, environment=environment, output=output)
        running.append(program)
        said.write(f"{program.pid}\n")
        said.flush()
        said.write(f"{program.wait()}\n")
