"""Former name of ``ultrascale_bert.pretrain``, for job files and scripts that use it."""

import runpy

if __name__ == "__main__":
    runpy.run_module("ultrascale_bert.pretrain", run_name="__main__", alter_sys=True)
