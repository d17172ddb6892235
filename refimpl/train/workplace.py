"""Where a run's files are; how its jobs wait for each other's."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from refimpl.model.weights_io import Model, WeightsError, load_weights, replace_file

LOOK_SECONDS = 0.2

Say = Callable[[str], None]


@dataclass(frozen=True)
class Workplace:
    """The folders of a run, and what it runs on.

    Args:
        corpus: folder of the token files.
        work: folder of weights, shards and reports, shared by the jobs.
        device: of the models.
        compiled: whether losses are compiled.
        resumed: a folder as the registry reads it, with the weights of a run that this one goes on from; None starts
            anew.
    """

    corpus: Path
    work: Path
    device: torch.device
    compiled: bool = True
    resumed: Path | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether bf16 is the fast type."""
        return self.device.type == "cuda"

    @property
    def weights(self) -> Path:
        """A folder as the registry reads it."""
        return self.work / "weights"

    def weights_file(self, size: str, model: str) -> Path:
        """`weights/<size>/<model>.safetensors`."""
        return self.weights / size / f"{model}.safetensors"

    def resume(self, model: Model, size: str, name: str, say: Say) -> bool:
        """Load what an earlier run left of a model; False if there is none, or if its shape was another."""
        if self.resumed is None:
            return False
        try:
            load_weights(model, self.resumed / size / f"{name}.safetensors")
        except (FileNotFoundError, WeightsError) as reason:
            say(f"starts anew: {reason}")
            return False
        say("goes on from the weights of an earlier run")
        return True

    def shards(self, size: str) -> Path:
        """Where the target of a size puts what it writes."""
        return self.work / "shards" / size

    def report(self, job: str, size: str, content: dict[str, Any]) -> None:
        """Keeps what a job found, as `reports/<size>-<job>.json`."""
        replace_file(self.work / "reports" / f"{size}-{job}.json", (json.dumps(content, indent=1) + "\n").encode())


def wait_for_file(file: Path, deadline: float) -> None:
    """Blocks until a file is there; files of a run appear whole.

    Raises:
        TimeoutError: it is not there by the deadline.
    """
    while not file.is_file():
        if time.time() > deadline:
            raise TimeoutError(f"{file} did not appear in time: look into the log of the job that writes it")
        time.sleep(LOOK_SECONDS)
