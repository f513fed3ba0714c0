"""The environment of a server: variables that programs need, and none that was meant for the agent.

Taken by name, not left out by name: credentials have any names, and `LLAMA_ARG_…` would change what is served.
"""

from collections.abc import Mapping

from pilotage.processes.census import UP_FOLDER

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        UP_FOLDER,
    }
)
_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "HIP_", "HSA_", "ROCR_", "GGML_", "OMP_", "VK_")
"""Languages and devices."""


def scrubbed(own: Mapping[str, str], given: Mapping[str, str], mark: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server: from the agent's `own`, with what its spec has `given`, and our mark."""
    kept = {name: value for name, value in own.items() if name in _NAMES or name.startswith(_PREFIXES)}
    return kept | dict(given) | dict(mark)
