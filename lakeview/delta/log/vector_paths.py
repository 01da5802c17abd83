"""Deletion vector descriptors to the files they name (today's protocol, Deletion Vectors, Derived Fields); Z85 text."""

import base64
import re
import uuid

from lakeview.delta.log.paths import decode_path
from lakeview.rows.bitmaps import corrupt_vector

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_LETTERS = frozenset(_Z85)
_UUID_LETTERS = 20
_UUID_BYTES = 16
_OFFSET = re.compile(r"@[0-9]+$")


def vector_file(storage_type: str, path_or_inline_dv: str) -> str | None:
    """The file a deletion vector lies in, relative to the table's root or absolute; None for an inline one.

    CorruptTableError for a storage type or a name that no protocol knows.
    """
    match storage_type:
        case "i":
            return None
        case "p":  # "the same format as the path field in the add/remove actions"
            return decode_path(path_or_inline_dv)
        case "u" if len(path_or_inline_dv) >= _UUID_LETTERS:
            prefix, name = path_or_inline_dv[:-_UUID_LETTERS], path_or_inline_dv[-_UUID_LETTERS:]
            folder = f"{prefix}/" if prefix else ""
            number = z85_decoded(name, path_or_inline_dv)
            if len(number) != _UUID_BYTES:  # a padded chunk is a byte shorter
                raise corrupt_vector(path_or_inline_dv, f"its name stands for {len(number)} bytes, not for a UUID")
            return f"{folder}deletion_vector_{uuid.UUID(bytes=number)}.bin"
    text = f"{storage_type}{path_or_inline_dv}"
    raise corrupt_vector(text, f"storage type {storage_type!r} with a text of {len(path_or_inline_dv)} letters")


def file_of(unique_id: str) -> str | None:
    """The file in a deletion vector's unique id (`storageType`, `pathOrInlineDv`, `@offset`); errors as above."""
    return vector_file(unique_id[:1], _OFFSET.sub("", unique_id[1:]))


def z85_encoded(data: bytes) -> str:
    """Bytes, a multiple of four, as Z85 text."""
    return base64.b85encode(data).decode().translate(_TO_Z85)


def z85_decoded(text: str, place: str) -> bytes:
    """Z85 text (ZeroMQ RFC 32) as bytes, five letters to four; CorruptTableError names `place`.

    A last group that begins with one to three `#` stands for that many bytes less: no whole group can begin so. That
    is how writers in Rust pad; Spark pads with zero bytes instead.
    """
    tail = text[-5:]
    missing = len(tail) - len(tail.lstrip("#")) if len(tail) == 5 else 0
    text = f"{text[: len(text) - len(tail)]}{'0' * missing}{tail[missing:]}"
    if len(text) % 5 or missing > 3 or not _LETTERS.issuperset(text):
        raise corrupt_vector(place, "its text is not Z85")
    try:
        data = base64.b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise corrupt_vector(place, "its text is not Z85: a group stands for more than four bytes") from error
    last = len(data) - 4
    if missing and any(data[last : last + missing]):
        raise corrupt_vector(place, "its text is not Z85: the last group stands for more bytes than it says")
    return data[:last] + data[last + missing :] if missing else data
