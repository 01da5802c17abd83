"""Changes of a transaction that leave nothing of what the table was: other columns, or another definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakeview.delta.write.clustering import FEATURE, changed_domain
from lakeview.delta.write.create import check_definition, check_schema
from lakeview.delta.write.whole_files import WholeFiles
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema


class TableReplacement(WholeFiles):
    """The part of a transaction that replaces the schema of a table, or its definition, once all files are removed."""

    def replace_schema(self, schema: Schema, partition_by: Sequence[str] | None = None) -> None:
        """Give the table another schema altogether, for the rows that come next. `partition_by`: its partition columns
        from now on; without, those that it has, in the spelling of the schema.

        InvalidRequestError unless this commit has removed every file, whose columns the schema would have to keep, and
        for partition columns that the schema lacks.
        """
        self._check_no_files()
        spellings = {name.casefold(): name for name in schema.names}
        own = [spellings.get(name.casefold(), name) for name in self.definition.partition_columns]
        partitions = own if partition_by is None else list(partition_by)
        check_schema(schema, partitions)
        self._change_schema(schema)
        self.definition.change_partitions(partitions)

    def replace_table(
        self,
        schema: Schema,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> None:
        """Remove all rows and give the table the definition of a new one. Of the properties stay those by which columns
        are mapped and commits are timed; of the protocol everything: it is never downgraded.

        InvalidRequestError and UnsupportedTableError as for a new table, ConstraintViolationError for one whose rows
        have to stay.
        """
        check_definition(schema, partition_by, cluster_by, properties or {})
        with self.files.operation():
            self.remove()
        self._check_no_files()
        features = (FEATURE,) if cluster_by else ()
        self.definition.replace(schema, partition_by, properties or {}, description, features)
        domain = changed_domain(self.schema, cluster_by, self._base.domain_metadata())
        self.domains += [] if domain is None else [domain]
        self._clustering = list(cluster_by)
        self.definition.check_writable()
        self._touched = True

    def _check_no_files(self) -> None:
        rest = set(self._base.adds([])["key"]) - self.files.removed_paths
        if rest or self.files.adds:
            raise InvalidRequestError(
                "the schema of a table can be replaced only by a commit that replaces all of its files first",
                fix="remove all files before, or evolve the schema",
                kind="schema-change",
            )
