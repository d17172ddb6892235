"""A kernel of the very interpreter that runs the notebook, whatever kernels are installed on the machine."""

import os
import signal
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from traitlets import default


class _OneKernel(KernelSpecManager):
    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """This interpreter, under any name."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


class ThisInterpreter(AsyncKernelManager):
    """Starts `sys.executable -m ipykernel_launcher`, so that a notebook sees the packages that its runner sees."""

    @default("kernel_spec_manager")
    def _this_interpreter(self) -> KernelSpecManager:
        return _OneKernel(parent=self)


def execute_blocking(client: NotebookClient, env: Mapping[str, str]) -> None:
    """Run all cells; Ctrl-C ends the kernel at once and is raised here.

    nbclient runs in a thread of its own: in the main thread it takes Ctrl-C away, then fails over its own cleaning.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(client.execute, env=dict(env))
        try:
            running.result()
        except KeyboardInterrupt:
            pid = getattr(client.km and client.km.provisioner, "pid", None)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            raise
