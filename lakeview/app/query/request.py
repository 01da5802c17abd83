"""What a page asks of a table's rows: the line of JSON that the process which reads them is given."""

import msgspec

MAX_RESULT_BYTES = 256 << 20
"""A result above this is refused."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wanted of a table: `sql`, else the changes of commits `start` to `version`, else the rows in which it
    differs from the version `base`, else rows that `where` keeps: the first ones, with a `seed` a sample of all, or as
    `profile` the PROFILE of all.

    `paths`: of these data files alone; `skips_missing`: of first rows, leave out data files that are not in the store;
    `names`: what the table is called in `sql`; `is_rowwise`: as `Query` has it;
    `change_types`: of the changes only these; `limit`: rows at most; `memory`: bytes the process may take; `seconds`
    after which rows that were found are given as they are, 0 for no limit.
    """

    address: str
    version: int
    limit: int
    memory: int
    seconds: float = 0
    sql: str | None = None
    names: tuple[str, ...] = ()
    is_rowwise: bool = False
    where: str | None = None
    paths: tuple[str, ...] | None = None
    skips_missing: bool = False
    seed: int | None = None
    profile: bool = False
    start: int | None = None
    change_types: tuple[str, ...] = ()
    base: int | None = None

    @property
    def can_stop(self) -> bool:
        """True if a part of the rows is an answer once `seconds` are over, or the columns of a profile that were
        read: a part of an aggregate or a sample is none."""
        return self.seconds > 0 and self.seed is None and (self.sql is None or self.is_rowwise)

    @property
    def stopped_early(self) -> str:
        """What became of it where it was stopped before there was a part to show."""
        if self.profile:
            return "the profile was stopped before its first column was done"
        if self.base is not None:
            return "the comparison was stopped before its first row was read"
        return "the query was stopped before it had an answer"

    @property
    def cheaper(self) -> str:
        """What to do that takes less time and memory, of what the page offers instead."""
        if self.base is not None:
            return "compare versions closer together"
        return "filter by columns that skip files" if self.start is None else "choose fewer commits"
