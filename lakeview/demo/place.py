"""Where the demo lake lies, and whether what lies there is a whole one. Knows no Spark: pages ask it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakeview.model.config import settings
from lakeview.model.errors import InvalidRequestError

# Written last: a folder that holds it is a whole demo lake.
MARK = ".lakeview-demo"


def demo_path() -> Path:
    """The folder the configuration names (LAKEVIEW_DEMO)."""
    return Path(settings().demo)


def find_demo(path: str | Path | None = None) -> Path | None:
    """The demo lake at `path` (the configured place), or None when there is no whole one."""
    place = demo_path() if path is None else Path(path)
    return place if (place / MARK).is_file() else None


@contextmanager
def built_beside(path: Path) -> Iterator[Path]:
    """A new folder beside `path` that takes its place when the block ends well, and disappears when it does not.

    So an interrupted build leaves no half lake. Raises InvalidRequestError when something lies at `path` already.
    """
    if path.exists():
        raise InvalidRequestError(
            f"{path} is there already", fix="remove it, or name another folder with --path", place=str(path)
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield folder
        folder.chmod(0o755)  # mkdtemp's are for one user; a lake is for everyone the umask of its files allows
        (folder / MARK).touch()
        os.rename(folder, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
