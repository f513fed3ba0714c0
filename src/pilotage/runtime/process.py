"""Start and end of a long-running process: garbage collection and signals."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator


def tune_gc() -> None:
    """Make the cyclic garbage collector cheap for a process that lives long and holds many objects.

    What was imported will never be garbage, so it is taken out of sight; young objects are looked at less often.
    Who has turned the collector off looks after memory himself: nothing is done then.
    """
    if not gc.isenabled():
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@contextlib.contextmanager
def on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM and SIGINT, as long as the context lasts; a second one means: hurry."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
