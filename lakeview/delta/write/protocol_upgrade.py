"""Features that a table takes into use to the protocol that it needs then (today's protocol, Table Features)."""

from __future__ import annotations

from collections.abc import Collection

from lakeview.delta.features import LEGACY_WRITER_FEATURES, MAX_WRITER_VERSION, READER_FEATURES, WRITER_FEATURES
from lakeview.delta.log.actions import Protocol
from lakeview.delta.write.rules import with_required
from lakeview.model.errors import UnsupportedTableError

_TABLE_FEATURES = 3
"""The reader version from which readers are told features by name."""


def supported_features(protocol: Protocol) -> frozenset[str]:
    """The features that a protocol names, or implies by its legacy version."""
    version = protocol.min_writer_version
    implied = {f for v, names in LEGACY_WRITER_FEATURES.items() if v <= version < MAX_WRITER_VERSION for f in names}
    return frozenset(implied | set(protocol.writer_features or ()))


def upgraded(protocol: Protocol, features: Collection[str], address: str) -> Protocol:
    """The lowest protocol that supports what the old one does, and these features; the old one if it does already.

    A legacy version becomes the list of features that it implies. UnsupportedTableError for a feature not written here.
    """
    current = supported_features(protocol)
    additions = with_required(frozenset(features)) - current
    if not additions:
        return protocol
    if missing := sorted(additions - WRITER_FEATURES):
        raise UnsupportedTableError(
            f"this change needs the Delta writer feature {missing[0]}, which this writer does not implement",
            fix=f"make the change to {address} with an engine that implements it",
            place="protocol.writerFeatures",
            kind="unsupported-writer-feature",
        )
    every = sorted(current | additions)
    readers = sorted(set(every) & READER_FEATURES | set(protocol.reader_features or ()))
    if readers:
        return Protocol(_TABLE_FEATURES, MAX_WRITER_VERSION, readers, every)
    return Protocol(protocol.min_reader_version, MAX_WRITER_VERSION, None, every)
