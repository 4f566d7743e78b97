"""Former name of ``ultrascale_torchx``, for components that people wrote after those of `lib/`."""
