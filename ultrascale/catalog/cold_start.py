"""Time until a new replica of a service answers, as far as it is published."""

NODE_SECONDS = 180
"""Seconds from a pod that waits to a node that is ready: assumed, as no source publishes it."""

IMAGE_SECONDS = 360
"""Seconds to pull an image of 15 to 20 GB: the upper end of what AWS states without SOCI."""

IMAGE_SOURCE = (
    "https://aws.amazon.com/blogs/machine-learning/"
    "reducing-container-cold-start-times-using-soci-index-on-dlami-and-dlc/"
)

# 39 s of an 8B model on an H100, 76 s of MiniMax-M2.5, both without a cache of compiled code.
ENGINE_SECONDS = 120
"""Seconds in which vLLM starts, compiles and captures CUDA graphs, beside weights: assumed.

Sources:
    https://github.com/vllm-project/vllm/pull/11005
    https://github.com/vllm-project/vllm/pull/39240
"""

ENGINE_SOURCE = "https://github.com/vllm-project/vllm/pull/11005"
