"""Addresses and recorded paths: their spellings to one, and which lies below which."""

import os
import posixpath
import re
from urllib.parse import unquote

from lakeview.model.errors import InvalidRequestError

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_ABSOLUTE = re.compile(rf"({_SCHEME.pattern})?/")


def normalise(address: str, *, decode: bool = False) -> str:
    """An address in one spelling: local ones as an absolute path, others as `scheme://rest`, no slash at the end.

    `decode`: percent-decode `file:` addresses (what a user types; paths out of a log are decoded already).
    """
    if "\0" in address:
        raise InvalidRequestError("the address holds a null character", fix="give a path or a URL")
    if not address.strip():
        raise InvalidRequestError("the address is empty", fix="give a folder or a URL, such as lake/orders")
    scheme, _, rest = address.partition(":")
    if not _SCHEME.match(address) or (len(scheme) == 1 and os.name == "nt"):
        return os.path.abspath(os.path.expanduser(address))
    if scheme.lower() in ("file", "local"):
        path = re.sub(r"^//(localhost(?=/))?", "", rest) or "/"
        return os.path.abspath("/" + (unquote(path) if decode else path).lstrip("/"))
    head, _, tail = rest.removeprefix("//").partition("/")
    tail = posixpath.normpath("/" + tail).lstrip("/") if tail else ""
    return f"{scheme.lower()}://{head}" + (f"/{tail}" if tail else "")


def is_absolute(path: str) -> bool:
    """Whether a recorded path names its place without the table's root; `load-10:30.parquet` does not."""
    return _ABSOLUTE.match(path) is not None


def begins_with_scheme(path: str) -> bool:
    """Whether a URI that is this text would have a scheme (RFC 2396)."""
    return _SCHEME.match(path) is not None


def is_local(address: str) -> bool:
    """Whether a normalised address is a folder of this machine."""
    return "://" not in address


def below(path: str, root: str) -> bool:
    """Whether a normalised address is a folder or lies below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def relative_to(address: str, root: str) -> str:
    """`./` and the path of a normalised address below a root; an address elsewhere as it is. See `resolved_in`."""
    return "./" + address[len(root.rstrip("/")) + 1 :] if below(address, root) and address != root else address


def resolved_in(path: str, root: str) -> str:
    """The address that `relative_to` made `path` of, wherever the root lies now."""
    return f"{root.rstrip('/')}/{path[2:]}" if path.startswith("./") else path
