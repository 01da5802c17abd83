"""Changes of what a table is beside its columns: properties, constraints, protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import polars as pl

from lakeview.delta.log.actions import supported_features
from lakeview.delta.properties import PROPERTIES, Effect
from lakeview.delta.write.checkpoint.struct_statistics import live_adds
from lakeview.delta.write.feature_files import MAPPING, check_plain_names, files_of
from lakeview.delta.write.feature_removal import REMOVALS, last_properties, protocol_without, traces
from lakeview.delta.write.live_files import LiveFile, live_files
from lakeview.delta.write.optimize import rewrite_each
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.property_checks import check_changes, check_name
from lakeview.delta.write.row_rules import Expression, new_rules, parse_rule
from lakeview.delta.write.rules import clustering_domain, properties_of, property_features, with_versions
from lakeview.model.arguments import integer_of, text_of
from lakeview.model.errors import ConstraintViolationError, InvalidRequestError
from lakeview.model.printable import choices, example_text
from lakeview.predicates.expressions import parse
from lakeview.predicates.tree import Node, complement
from lakeview.rows.matching import check_condition, frame_of, matching_rows
from lakeview.storage import Storage

_CONSTRAINT = "delta.constraints."
RowCheck: TypeAlias = Callable[[pl.DataFrame], pl.Series]
"""Whether each row keeps a rule."""


class PropertyChanges(PendingCommit):
    """The part of a transaction that changes properties, constraints and protocol.

    Whatever a change needs of the protocol, the commit upgrades it to; a constraint that rows violate is refused
    before anything is written.
    """

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties; the others stay. What a property needs of the protocol, the commit upgrades it to.

        InvalidRequestError for an unknown `delta.*` property or a value that cannot be meant, UnsupportedTableError for
        one that would not be honoured.
        """
        check_changes(properties, self.definition.schema)
        self._change_properties(dict(properties))

    def unset_properties(self, names: Collection[str]) -> None:
        """Remove table properties. InvalidRequestError for one that is not set."""
        properties = self.definition.properties
        for name in names:
            if name not in properties:
                raise InvalidRequestError(
                    f"the table has no property {name}",
                    fix=choices(name, sorted(properties)),
                    place=name,
                    kind="unknown-property",
                )
            if name in PROPERTIES and PROPERTIES[name].effect is Effect.ENGINE:
                raise InvalidRequestError(
                    f"{name} is what writers keep for themselves: files could not be read right without it",
                    fix="leave it as it is",
                    place=name,
                    kind="property-of-writers",
                )
        self._change_properties(dict.fromkeys(names))

    def add_constraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint, in Spark's SQL, once all rows satisfy it: null does not.

        Files are read only where statistics do not prove it. ConstraintViolationError tells how many rows do not, and
        one of them; UnsupportedTableError an expression that cannot be evaluated here.
        """
        if not text_of(name, "name").strip():
            raise InvalidRequestError("a constraint needs a name", fix="give one", kind="constraint-name")
        check_name(name, "the name of a constraint")
        if any(key.lower() == f"{_CONSTRAINT}{name}".lower() for key in self.definition.properties):
            raise InvalidRequestError(
                f"the table has a constraint {name} already", fix="drop it first, or choose another name", place=name,
                kind="constraint-exists",
            )  # fmt: skip
        self._change_properties({f"{_CONSTRAINT}{name}": text_of(expression, "expression")})

    def drop_constraint(self, name: str) -> None:
        """Remove a CHECK constraint. InvalidRequestError if there is none of that name."""
        name = text_of(name, "name")
        keys = [k for k in self.definition.properties if k.lower() == f"{_CONSTRAINT}{name}".lower()]
        if not keys:
            constraints = [k.removeprefix(_CONSTRAINT) for k in self.definition.properties if k.startswith(_CONSTRAINT)]
            raise InvalidRequestError(
                f"the table has no constraint {name}",
                fix=choices(name, constraints),
                place=name,
                kind="unknown-constraint",
            )
        self._change_properties(dict.fromkeys(keys))

    def upgrade_protocol(self, features: Collection[str]) -> None:
        """Let the protocol name more table features. UnsupportedTableError for one that is not written here."""
        if properties := self._properties_without_force(features):
            self._change_properties(properties)
        self.definition.support(features)

    def upgrade_versions(self, reader: int, writer: int) -> None:
        """Let the protocol have higher versions. InvalidRequestError for lower ones, and two that do not fit."""
        own = supported_features(self.definition.protocol)
        reader, writer = integer_of(reader, "reader version"), integer_of(writer, "writer version")
        self.definition.protocol = with_versions(self.definition.protocol, reader, writer, self._storage.root)
        features = supported_features(self.definition.protocol) - own
        if properties := properties_of(features, self.definition.properties):
            self._change_properties(properties)

    def drop_feature(self, feature: str) -> None:
        """Take a table feature out of the protocol that is in use nowhere, and the properties that mean nothing without
        it. Errors as `protocol_without`."""
        log, state_of = self._table.log, self._table.state
        protocol = protocol_without(feature, self.definition, self._base, log, state_of)
        if properties := last_properties(feature, self.definition.properties):
            self.definition.change_properties(properties)
        self.definition.protocol = protocol
        self.intent.drops_domains = self.intent.drops_domains or REMOVALS[feature].operation is not None
        self.intent.reads_metadata = True

    def remove_traces(self, feature: str) -> None:
        """Take away what the table itself keeps for a feature, so that the next commit can drop it: properties,
        domains, and the ids of rows, which files are added again without."""
        own = traces(feature, self._base)
        self.definition.change_properties(own.changes)
        self.domains += own.domains
        if own.ids:
            self.reads(pl.lit(value=True))
            for row in live_adds(self._base):
                if row["base_row_id"] is not None:
                    without = {**row, "base_row_id": None, "default_row_commit_version": None}
                    self.files.add_again(without, row["stats"])
        self.intent.reads_metadata = True

    def rewrite_files(self, feature: str) -> None:
        """Write each file again that is read right by readers with a feature alone. The rows stay, and appends of other
        writers make no difference."""
        rewrite_each(self, files_of(feature, self))

    def remove_column_metadata(self, feature: str) -> None:
        """Take what a feature keeps in the metadata of columns away, and write the files again that need it. No other
        writer may have added one meanwhile. InvalidRequestError for a name that only mapped columns can have."""
        if feature == MAPPING:
            check_plain_names(self.schema)
        files, clustering = files_of(feature, self), self._clustering
        mark = REMOVALS[feature].mark
        assert mark is not None, f"columns are not marked with {feature}"
        self.definition.remove_column_metadata(mark)
        self.domains += [clustering_domain(self.schema, clustering)] if clustering else []
        self.reads(pl.lit(value=True))
        rewrite_each(self, files)

    # -- inside

    def _change_properties(self, properties: Mapping[str, str | None]) -> None:
        features = set(property_features({name: text for name, text in properties.items() if text is not None}))
        properties = {**self._properties_without_force(features), **properties}
        for name, text in properties.items():
            if name.startswith(_CONSTRAINT) and text is not None:
                self._check_constraint(name.removeprefix(_CONSTRAINT), text)
        self.definition.change_properties(properties)
        self.definition.check_writable()
        if self.definition.starts_row_tracking():
            # "all existing files must be assigned row ids": added again, they get them with the commit
            self.reads(pl.lit(value=True))
            own_paths = self.files.removed_paths | self.files.live_again
            for row in live_adds(self._base):
                has_ids = None not in (row["base_row_id"], row["default_row_commit_version"])
                if not has_ids and row["key"] not in own_paths:
                    self.files.add_again(row, row["stats"])

    def _properties_without_force(self, features: Collection[str]) -> dict[str, str]:
        """The properties that are there without their feature, and get their force with these features."""
        new_features = set(features) - supported_features(self.definition.protocol)
        return properties_of(new_features, self.definition.properties)

    def _check_constraint(self, name: str, expression: str) -> None:
        with new_rules():
            condition = parse_rule(Expression(name, expression), self.definition.schema)
        subject = f"the constraint {name} ({expression})"
        check_condition(condition, self.definition.schema, subject)
        names = list(dict.fromkeys(condition.meta.root_names()))
        holds = partial(matching_rows, where=condition, subject=subject)
        self._check_existing(subject, names, holds, complement(parse(condition)))

    def _check_existing(self, subject: str, names: Sequence[str], holds: RowCheck, against: Node) -> None:
        """ConstraintViolationError if a row that is there breaks a rule, which is about columns of these names.
        `against`: what such rows satisfy: files are skipped whose statistics prove that none does."""
        if self.files.adds:
            raise InvalidRequestError(
                f"this transaction has written rows already, which were not checked against {subject}",
                fix="change the table first, then write, or do it in two transactions",
                kind="rule-after-rows",
            )
        self.reads(pl.lit(value=True))
        files = live_files(self._base, self.definition, self._storage, against)
        _check_rows(files, self._storage, subject, names, holds)


def _check_rows(
    files: Iterable[LiveFile], storage: Storage, subject: str, names: Sequence[str], holds: RowCheck
) -> None:
    count, example = 0, ""
    for file in files:
        for batch in file.batches(storage, file.task.schema.select(names)):
            frame = frame_of(batch)
            bad = frame.filter(~holds(frame))
            if bad.height and not count:
                row = bad.row(0, named=True)
                example = ", ".join(f"{n} = {example_text(v)}" for n, v in row.items()) + f" in {file.task.path}"
            count += bad.height
    if count:
        rows = "1 row of the table breaks" if count == 1 else f"{count:,} rows of the table break"
        raise ConstraintViolationError(
            f"{rows} {subject}{'' if count == 1 else '; one of them'}: {example}",
            fix="correct or delete these rows first",
            kind="existing-rows",
        )
