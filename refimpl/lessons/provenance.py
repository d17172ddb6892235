"""Where a chapter's outputs come from: the stamp in a notebook's metadata, and the sentence that the page shows."""

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from refimpl.program.errors import UserError

KEY = "stream_order"


@dataclass(frozen=True)
class Machine:
    """What ran: the kind of device (`cuda`, `sim`; `cpu` where none was asked for), its name, driver and versions."""

    kind: str
    device: str
    driver: str
    torch: str
    python: str
    date: str

    def sentence(self) -> str:
        """One line for a reader, as `Measured on NVIDIA H200 (driver 580.159, torch 2.11.0), 2026-11-29.`"""
        driver = f"driver {self.driver}, " if self.driver else ""
        verb = "Measured" if self.kind == "cuda" else "Ran"
        return f"{verb} on {self.device} ({driver}torch {self.torch}), {self.date}."


@dataclass(frozen=True)
class Stamp(Machine):
    """A notebook's stamp: the machine, and the hashes of the cells and modules that made its outputs."""

    cells_sha256: str
    modules: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """The stamp as it stands in `nb.metadata["stream_order"]`."""
        return asdict(self)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], name: str) -> "Stamp":
        """Read the stamp of the notebook `name`.

        Raises:
            UserError: the notebook has no stamp, or one that this version does not write.
        """
        found = metadata.get(KEY)
        if found is None:
            raise UserError(f"{name} has no stamp: make its outputs with `python -m refimpl notebooks run {name}`")
        wanted = {field.name for field in fields(cls)}
        if set(found) != wanted:
            odd = ", ".join(sorted(wanted ^ set(found)))
            raise UserError(f"{name} has a stamp of another form ({odd}): run it again")
        return cls(**found)


def this_machine() -> Machine:
    """The machine that this process ran on; in a kernel it says which device the cells really used."""
    import torch

    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = {"torch": torch.__version__.partition("+")[0], "python": platform.python_version(), "date": today}
    if torch.cuda.is_initialized():
        return Machine(kind="cuda", device=torch.cuda.get_device_name(), driver=_driver(), **versions)
    # A device that the cells never imported is not one that they ran on.
    simulator = sys.modules.get("refimpl.device.simulator.install")
    if simulator is not None and simulator.installed():
        return Machine(kind="sim", device="the simulated device", driver="", **versions)
    return Machine(kind="cpu", device="the CPU", driver="", **versions)


def _driver() -> str:
    """The driver's version; a machine without nvidia-smi (ROCm) says so instead of failing a finished run."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    query = ["nvidia-smi", f"--id={visible}", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def processor() -> str:
    """The name of the processor, with its number of cores, for measurements that no GPU took part in."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} cores"
