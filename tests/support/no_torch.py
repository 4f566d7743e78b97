"""The reason why a test of the training program is skipped."""

NO_TORCH = "torch is not installed: run `make training`"
