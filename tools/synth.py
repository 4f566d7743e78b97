"""Synthesis into new folders, which take the place of `cdk.out` and `dist` once it has succeeded.

``python tools/synth.py cluster FILE`` or ``pipeline FILE``, in the project's folder.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ultrascale.cdk_cli import find_cdk_cli
from ultrascale.errors import UltrascaleError

_NEW = Path(".make", "synth")
_OUTPUTS = ("cdk.out", "dist")
# Of the CDK's own command line: they name the new folder, and a command that is not `make synth`.
_UNWANTED = ("Successfully synthesized to ", "Supply a stack id (")


def main() -> None:
    """Synthesize what the arguments name; exits with the CDK's own status where it fails."""
    kind, file = sys.argv[1:]
    shutil.rmtree(_NEW, ignore_errors=True)
    _reuse_assets(Path("cdk.out"), _NEW / "cdk.out")
    try:
        cdk = find_cdk_cli(Path.cwd())
    except UltrascaleError as error:
        sys.exit(str(error))
    context = ("-c", f"{kind}={file}", "-c", f"manifests={_NEW / 'dist'}")
    command = [str(cdk.program), "synth", "--strict", "--quiet", "--no-notices", *context]
    with subprocess.Popen(
        [*command, "--output", str(_NEW / "cdk.out")],
        env=cdk.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as synthesis:
        for line in synthesis.stdout or ():
            if not line.startswith(_UNWANTED):
                sys.stdout.write(line)
                sys.stdout.flush()
    if synthesis.returncode:
        sys.exit(synthesis.returncode)
    for name in _OUTPUTS:
        shutil.rmtree(name, ignore_errors=True)
        (_NEW / name).replace(name)


def _reuse_assets(old: Path, new: Path) -> None:
    """Link assets, which have the digest of their content in their name: the CDK copies 60 MB."""
    new.mkdir(parents=True)
    for asset in old.glob("asset.*.zip"):
        os.link(asset, new / asset.name)


if __name__ == "__main__":
    main()
