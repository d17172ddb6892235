"""A kernel of the very interpreter that runs the notebook, whatever kernels are installed on the machine."""

import sys

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
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
