"""A double of vLLM as TRL's server and client use it: answers by transformers, weights by TCP.

`trl.scripts.vllm_serve` starts `vllm serve`, which is `serve` here, with vLLM's routes. Weights go
through a store of torch's at the address and port of NCCL's group, which needs GPUs. As a program
it is `ultrascale_training.posttrain`, whose client joins that store.

Source: https://github.com/huggingface/trl/blob/v1.16.0/trl/generation/vllm_client.py
"""

import argparse
import json
import os
import runpy
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.distributed import TCPStore

# Modules of vLLM that TRL imports, with what it takes from them.
MODULES: Mapping[str, str] = {
    "__init__": "__version__ = '0.31.0'\nLLM = RequestOutput = SamplingParams = object",
    "sampling_params": "StructuredOutputsParams = object",
    "utils/network_utils": "from rollout_double import get_ip",
    "distributed/weight_transfer/nccl_common": "from rollout_double import trainer_init",
    "distributed/weight_transfer/packed_tensor": (
        "from rollout_double import send as packed_nccl_broadcast_producer"
    ),
    "entrypoints/cli/main": "import rollout_double\nrollout_double.serve()",
}
_PATIENCE = timedelta(seconds=60)
Document = Mapping[str, Any]


def install(folder: Path) -> None:
    """Write the modules into a folder of the module path."""
    for name, text in MODULES.items():
        file = folder / "vllm" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")


def get_ip() -> str:
    """Return the address of this pod."""
    return os.environ["POD_IP"]


def trainer_init(init_info: Document) -> SimpleNamespace:
    """Return the trainer's side of the group."""
    store = _store(init_info, is_master=True)
    return SimpleNamespace(group=SimpleNamespace(store=store, socket=None), sent=0)


def send(
    iterator: Iterable[tuple[str, torch.Tensor]],
    group: SimpleNamespace,
    src: int,
    post_iter_func: Callable[[tuple[str, torch.Tensor]], torch.Tensor],
) -> None:
    """Hand all tensors to the server."""
    for number, item in enumerate(iterator):
        array = post_iter_func(item).detach().float().contiguous().numpy()
        group.group.store.set(f"{group.sent}/{number}", array.tobytes())
    group.sent += 1


def _store(init_info: Document, *, is_master: bool) -> TCPStore:
    place = init_info["master_address"], init_info["master_port"]
    return TCPStore(*place, is_master=is_master, wait_for_workers=False, timeout=_PATIENCE)


class Server:
    """A model that answers, and takes weights."""

    def __init__(self, model: str, workers: int) -> None:
        from transformers import AutoModelForCausalLM

        self._name, self._workers, self._taken = model, workers, 0
        self._model = AutoModelForCausalLM.from_pretrained(model)
        self._store: TCPStore | None = None

    def got(self, path: str) -> Document | None:
        """Return the answer to GET."""
        settings = {
            "weight_transfer_config": {"backend": "nccl"},
            "model_config": {"logprobs_mode": "processed_logprobs"},
        }
        answers = {
            "/health": {},
            "/v1/models": {"data": [{"id": self._name}]},
            "/server_info": {"vllm_config": settings},
            "/get_world_size": {"world_size": self._workers},
        }
        return answers.get(path.partition("?")[0])

    def posted(self, path: str, body: Document) -> Document | None:
        """Return the answer to POST."""
        if path == "/v1/completions":
            return {"choices": [row for ids in body["prompt"] for row in self._answers(ids, body)]}
        if path == "/init_weight_transfer_engine":
            self._store = _store(body["init_info"], is_master=False)
        elif path == "/update_weights":
            self._take(body["update_info"])
        elif path not in ("/start_weight_update", "/finish_weight_update", "/reset_prefix_cache"):
            return None
        return {"success": True}

    def _take(self, info: Document) -> None:
        assert self._store is not None
        for number, (name, shape) in enumerate(zip(info["names"], info["shapes"], strict=True)):
            key = f"{self._taken}/{number}"
            array = np.frombuffer(self._store.get(key), dtype=np.float32).reshape(shape)
            self._model.get_parameter(name).data.copy_(torch.tensor(array))
            self._store.delete_key(key)
        self._taken += 1

    def _answers(self, ids: Sequence[int], body: Document) -> Iterable[Document]:
        made = self._model.generate(
            torch.tensor([ids] * body["n"]),
            do_sample=True,
            temperature=body["temperature"],
            top_p=body["top_p"],
            top_k=body["top_k"],
            max_new_tokens=body["max_tokens"],
            output_scores=True,
            return_dict_in_generate=True,
        )
        chances = torch.stack(made.scores, 1).log_softmax(-1)
        end = self._model.config.eos_token_id
        for row, chance in zip(made.sequences[:, len(ids) :].tolist(), chances, strict=True):
            tokens = row[: row.index(end) + 1] if end in row else row
            likely = [float(chance[place, token]) for place, token in enumerate(tokens)]
            logprobs = {
                "tokens": [f"token_id:{token}" for token in tokens],
                "token_logprobs": likely,
                "top_logprobs": [None] * len(tokens),
            }
            yield {"prompt_token_ids": ids, "token_ids": tokens, "logprobs": logprobs}


def serve() -> None:
    """Serve as `vllm serve MODEL` does with the options that TRL gives it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tensor-parallel-size", type=int, required=True)
    values, _ = parser.parse_known_args()
    assert os.environ["VLLM_SERVER_DEV_MODE"] == "1", "without it vLLM takes no weights"
    torch.manual_seed(3)
    server = Server(values.model, values.tensor_parallel_size)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(server.got(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer(server.posted(self.path, json.loads(body or b"{}")))

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self, document: Document | None) -> None:
            text = json.dumps(document or {}).encode()
            self.send_response(404 if document is None else 200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    ThreadingHTTPServer((values.host, values.port), Handler).serve_forever()


def _join(client: Any, device: object = None) -> None:
    """Join the group: TRL's own method, without the condition that the device is CUDA's."""
    info = {"master_address": get_ip(), "master_port": client.group_port}
    with ThreadPoolExecutor(1) as pool:
        route = f"{client.base_url}/init_weight_transfer_engine"
        joining = pool.submit(client._post, route, json={"init_info": info})
        client.communicator = trainer_init(info)
        joining.result()


if __name__ == "__main__":
    from trl.generation.vllm_client import VLLMClient

    setattr(VLLMClient, "init_communicator", _join)  # noqa: B010
    runpy.run_module("ultrascale_training.posttrain", run_name="__main__", alter_sys=True)
