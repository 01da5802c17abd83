"""SQL texts that may run and those that may not: nothing is read but the table that is open."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from lakeview import views
from lakeview.errors import InvalidRequestError

RUNS = [
    "select * from t",
    "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 3;",
    "with r as (select * from t) select * from r",
    "select * from t where a in (select a from t u)",
    "select * from t union all select * from flights",
    "select x.a from t as x join t y on x.a = y.a",
    "select `a` from `t` -- and a remark",
    "select 1 as one",
]


@pytest.mark.parametrize("text", RUNS)
def test_a_select_of_the_table_runs(text: str) -> None:
    assert views.query(text, ["flights"]).text == text.rstrip(";")


REFUSED = {
    "nothing": (" ; ", "the query is empty"),
    "two statements": ("select 1; drop table t", "there is more than one statement"),
    "no SQL": ("select from where", "the query cannot be read"),
    "an open quote": ("select 'x from t", "the query cannot be read"),
    "DROP": ("drop table t", "DROP is no SELECT"),
    "DELETE": ("delete from t", "DELETE is no SELECT"),
    "TRUNCATE": ("truncate table t", "TRUNCATE is no SELECT"),
    "UPDATE": ("update t set a = 1", "UPDATE is no SELECT"),
    "INSERT": ("insert into t values (1)", "INSERT is no SELECT"),
    "CREATE": ("create table x as select * from t", "CREATE is no SELECT"),
    "COPY": ("copy t to '/tmp/x.csv'", "COPY is no SELECT"),
    "SET": ("set a = 1", "SET is no SELECT"),
    "SHOW": ("show tables", "SHOW is no SELECT"),
    "EXPLAIN": ("explain select * from t", "EXPLAIN is no SELECT"),
    "VALUES": ("values (1, 2)", "VALUES is no SELECT"),
    "INTO": ("select * into x from t", "INTO is no part of a SELECT"),
    "a file by its function": ("select * from read_csv('/etc/passwd')", "read_csv would open files"),
    "in capitals": ("select * from READ_PARQUET('x')", "READ_PARQUET would open files"),
    "with a comment between": ("select * from read_ipc/**/('x')", "read_ipc would open files"),
    "behind nested comments": ("/* /* */ select 1 */ select * from read_json('x')", "read_json would open files"),
    "quoted": ("select * from \"read_csv\"('x')", "read_csv would open files"),
    "back-quoted": ("select * from `read_csv`('x')", "read_csv would open files"),
    "in a CTE": ("with r as (select * from read_json('x')) select * from r", "read_json would open files"),
    "in a union": ("select * from t union select * from read_ipc('x')", "read_ipc would open files"),
    "in a join": ("select * from t join read_parquet('x') r on true", "read_parquet would open files"),
    "of a schema": ("select * from public.read_csv('x')", "read_csv would open files"),
    "an address of a network": ("select * from read_parquet('http://127.0.0.1:1/x')", "read_parquet would open files"),
    "a scan": ("select * from scan_parquet('x')", "scan_parquet would open files"),
    "a file by its name": ("select * from '/etc/passwd.csv'", "there is no table"),
    "a file in quotes": ('select * from "/etc/x.parquet"', "there is no table"),
    "another function": ("select * from glob('/*')", "is no table"),
    "endless rows": ("select * from generate_series(1, 100000000000)", "is no table"),
    "UNNEST": ("select * from unnest([1, 2]) as u", "is no table"),
    "LATERAL": ("select * from t, lateral other('x')", "is no table"),
    "another table": ("select (select max(a) from z) from t", "there is no table z here"),
    "another schema": ("select * from a.t", "there is no table a.t here"),
    "deep nesting": (f"select {'(' * 5_000}1{')' * 5_000}", "nested more than 40 deep"),
    "a long chain": (f"select {' + '.join(['1'] * 3_000)}", "the query has 2,999 operators"),
    "membership of membership": (f"select * from t where a{' in (1)' * 2_400}", "nested too deep"),
    "ranges of ranges": (f"select * from t where a{' between 1 and 2' * 450}", "nested too deep"),
    "too long": (f"select '{'x' * 30_000}'", "the query has 30,009 characters"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_no_select_of_the_table_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        views.query(text, ["flights"])
    assert said in refused.value.message
    assert (refused.value.kind, refused.value.place) == ("bad-query", "sql")
    assert refused.value.fix


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("select * from t", None),
        ("select * from t where month = 3 and name like 'x%' order by 1", "month = 3 AND name LIKE 'x%'"),
        ("select a from t x where x.a = 1 and `b c` = 'y'", "a = 1 AND \"b c\" = 'y'"),
        ("select * from t where s.x = 3 -- a remark", "s.x = 3"),
        ("select * from t where a in (select a from t)", None),
        ("select * from t join t u on t.a = u.a where t.a = 1", None),
        ("with r as (select 1 as a) select * from r where a = 1", None),
        ("select * from (select a + 1 as a from t) where a = 1", None),
        ("select * from t where a = 1 union all select * from t", None),
    ],
)
def test_the_condition_on_the_table_is_told_apart(text: str, where: str | None) -> None:
    assert views.query(text).where == where


READERS = {"parquet": "write_parquet", "csv": "write_csv", "ipc": "write_ipc", "json": "write_ndjson"}


@pytest.mark.parametrize(("kind", "writer"), READERS.items())
def test_a_plan_that_reads_another_file_is_seen(kind: str, writer: str, tmp_path: Path) -> None:
    """Should the words above ever miss one, the plan that polars made of it tells."""
    rows = pl.DataFrame({"a": [1]})
    file = tmp_path / f"x.{kind}"
    getattr(rows, writer)(file)
    query = f"select t.a from t union all select a from read_{kind}('{file}')"
    plan = pl.SQLContext(t=rows.lazy()).execute(query, eager=False).explain(optimized=False)
    assert [name.lower().removeprefix("nd") for name in views.sources_refused(plan)] == [kind]


@pytest.mark.parametrize("text", [text for text in RUNS if "flights" not in text])
def test_a_plan_of_the_table_alone_is_let_through(text: str) -> None:
    plan = pl.SQLContext(t=pl.LazyFrame({"a": [1]})).execute(text, eager=False).explain(optimized=False)
    assert views.sources_refused(plan) == []
