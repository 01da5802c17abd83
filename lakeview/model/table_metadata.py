"""What a table records of itself beside its files: schema, protocol, properties and identity."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakeview.model.schema import Schema


@dataclass(frozen=True, slots=True)
class TableProtocol:
    """What a reader or writer must implement. Delta's two versions with their features, or Iceberg's one version."""

    min_reader_version: int | None = None
    min_writer_version: int | None = None
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    format_version: int | None = None

    @property
    def label(self) -> str:
        """The protocol in a few words: `reader 1 · writer 2` or `version 2`."""
        if self.format_version is not None:
            return f"version {self.format_version}"
        writer = "" if self.min_writer_version is None else f" · writer {self.min_writer_version}"  # none if shared
        return f"reader {self.min_reader_version}{writer}"

    @property
    def features(self) -> tuple[str, ...]:
        """Every feature named, each once, in alphabetical order."""
        return tuple(sorted({*(self.reader_features or ()), *(self.writer_features or ())}))


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """What a snapshot knows about itself without its files."""

    address: str
    format: str
    version: int
    timestamp: datetime | None
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    protocol: TableProtocol = TableProtocol()
    id: str | None = None
    name: str | None = None
    description: str | None = None
    created: datetime | None = None
    data_format: str = "parquet"
