"""A commit to the files that it adds, as a state that a scan can be made of."""

from collections.abc import Mapping, Sequence

import polars as pl

from lakeview.delta.data.scan import Scan
from lakeview.delta.log.commits import Commit
from lakeview.delta.log.file_actions import file_actions
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.state import StatisticsReader
from lakeview.model.data_types import Field
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableProtocol
from lakeview.rows.tasks import FileTask


class CommitFiles:
    """The adds of one commit that change data. Implements `lakeview.delta.log.state.TableState`, except that what a
    commit removes, and its transactions and domains, are left out."""

    def __init__(self, commit: Commit, state: Replay, root: str) -> None:
        """`state`: a version whose protocol and properties say how the files are read."""
        self._commit = commit
        self._state = state
        self._root = root

    @property
    def table_protocol(self) -> TableProtocol:
        """The protocol of the state."""
        return self._state.table_protocol

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the state."""
        return self._state.properties

    def adds(self, columns: Sequence[str], statistics: StatisticsReader | None = None) -> pl.DataFrame:  # noqa: ARG002
        """FILE_ACTIONS of the files added, in the order recorded."""
        actions = file_actions([self._commit], self._root, [*columns, "data_change"])
        return actions.filter(actions["added"] & actions["data_change"].fill_null(value=True))

    def removes(self) -> pl.DataFrame:
        """No tombstones."""
        return file_actions([], self._root)

    def transactions(self) -> pl.DataFrame:
        """As of the state."""
        return self._state.transactions()

    def domain_metadata(self) -> pl.DataFrame:
        """As of the state."""
        return self._state.domain_metadata()


def commit_tasks(
    commit: Commit, state: Replay, schema: Schema, partitions: Sequence[Field], root: str
) -> list[FileTask]:
    """The files that a commit adds with `dataChange`, each as a task that yields the whole schema."""
    return Scan(CommitFiles(commit, state, root), schema, partitions, root).tasks(None)


def changes_rows(commit: Commit) -> bool:
    """Whether a commit takes rows away, by whole files or by a deletion vector."""
    return any(a.remove is not None and a.remove.data_change is not False for a in commit.actions)
