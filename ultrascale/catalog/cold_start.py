"""Published durations of the steps until a new replica of a service answers."""

NODE_SECONDS = 180
"""Seconds from a waiting pod to a ready node: assumed, as no source publishes it."""

IMAGE_SECONDS = 360
"""Seconds to pull an image of 15 to 20 GB: AWS's upper figure without SOCI."""

IMAGE_SOURCE = (
    "https://aws.amazon.com/blogs/machine-learning/"
    "reducing-container-cold-start-times-using-soci-index-on-dlami-and-dlc/"
)

# 39 s of an 8B model on an H100, 76 s of MiniMax-M2.5, both without a cache of compiled code.
ENGINE_SECONDS = 120
"""Seconds in which vLLM starts, compiles and captures CUDA graphs, without loading weights:
assumed.

Sources:
    https://github.com/vllm-project/vllm/pull/11005
    https://github.com/vllm-project/vllm/pull/39240
"""

ENGINE_SOURCE = "https://github.com/vllm-project/vllm/pull/11005"

NEURON_COMPILE_SECONDS_PER_GB = 60
"""Seconds of NxD Inference's compilation per GB of weights: 15 min for 15 GB."""

NEURON_PLUGIN_COMPILE_SECONDS = 1200
"""Seconds of vLLM Neuron's compilation: the upper end of AWS's figure for 70B."""

NEURON_MODEL_GB = 15
"""Assumed size of a model's weights, as in AWS's figure."""

NEURON_COMPILE_SOURCES = (
    "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/nxd-inference/"
    "developer_guides/vllm-user-guide-v1.html",
    "https://github.com/aws-neuron/aws-neuron-sdk/blob/81ce03ae/vllm-neuron/docs/tutorials/"
    "tutorial-llama3-70b.md",
)
