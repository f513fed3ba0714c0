"""The servers that we know: one file each, found here by name."""

from pilotage.serving.runtimes import custom, llama_cpp, sglang, tgi, vllm
from pilotage.serving.runtimes.contract import Job, Runtime, Server

RUNTIMES = {each.RUNTIME.name: each.RUNTIME for each in (llama_cpp, vllm, sglang, tgi, custom)}

__all__ = ["RUNTIMES", "Job", "Runtime", "Server"]
