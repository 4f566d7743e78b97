"""Entry point of `ultrascale` and of `python -m ultrascale`."""

import gc
import sys

# Objects beyond those of the last collection that start the next one; Python's own figure is 700.
# The objects of imports and files stay until the process ends: about 100,000 in `check`.
_OBJECTS = 200_000


def run() -> None:
    """Run the command line; Ctrl-C during its import ends it without a traceback."""
    gc.set_threshold(_OBJECTS)
    try:
        from ultrascale.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Python would look through all objects for cycles at its end; the process takes them along.
        gc.freeze()


if __name__ == "__main__":
    run()
