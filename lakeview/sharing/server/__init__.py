"""Tables to a Delta Sharing server: what is shared with whom, over HTTP.

`lakeview share serve` runs it. Everything here needs the extra `server`: `require_extra` says so where it is missing.
"""

from importlib.util import find_spec

from lakeview.model.errors import MissingExtraError


def require_extra() -> None:
    """MissingExtraError unless the packages of the extra `server` are installed."""
    missing = [name for name in ("yaml", "starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"the sharing server needs {', '.join(missing)}", fix="pip install 'lakeview[server]'", place="server"
        )
