"""SQL texts that may run and those that may not: nothing is read but the table that is open."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lakeview.model.errors import InvalidRequestError
from lakeview.predicates.query import first_query, is_nameable, query, sources_refused, with_column

RUNS = [
    "select * from t",
    "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 3;",
    "with r as (select * from t) select * from r",
    "select * from t where a in (select a from t u)",
    "select * from t union all select * from flights",
    "select x.a from t as x join t y on x.a = y.a",
    "select `a` from `t` -- and a remark",
    "select 1 as one",
    "select a, count(*) as n from t group by a order by n desc, a limit 3",
    "select a, count(*) from t group by a order by a nulls first",
    "with r as (select * from t) select a from r",
    "select * from t where a in (select a from t u where u.a>1)",
    "select a from t union all select a from t",
    "select x.a from t x left join t y using (a)",
    "select `a` from `t` -- x",
    "select s.x from t",
    'select "b c" from t where "b c" like \'%x\' or "b c" not like \'y%\'',
    "select cast(a as double) x, a::int y, try_cast(a as text) z from t",
    "select date '2024-01-01' as x, d + interval '1 day' as y from t",
    "select extract(year from d) y, date_part('month', d) m, date_trunc('month', d) from t",
    "select row_number() over (partition by a order by d) r from t",
    "select sum(a) over (order by d rows between unbounded preceding and current row) r from t",
    "select distinct a from t order by a",
    "select * exclude (s) from t",
    "select a, case when a=1 then 'x' else 'y' end c from t",
    "select if(a>1,1,0) from t",
    "select a, count(distinct d) from t group by all",
    'select substring("b c" from 1 for 1) from t',
    'select trim("b c") from t',
    "select position('x' in \"b c\") from t",
    "select \"b c\" || 'z' from t",
    "select a from t limit 2 offset 1",
    "select max(a) filter (where a>1) from t",
    "select a from t where a between 1 and 2 and not a = 2",
    "select a is not distinct from 1 from t",
    "select array_agg(a) from t",
    "select l[1] from t",
    "select array[1,2] from t",
    "select a from t qualify row_number() over (order by a) = 1",
    "select t.* from t",
    "select * from t a, t b limit 3",
    "select * from t cross join t u limit 2",
    "select x'00ff' as b",
    "select a from t except select 1",
    "select count(*) from t where exists (select 1 from t u)",
    "select string_agg(\"b c\", ',') from t",
    'select a as "weird "" name" from t',
    "select round(avg(a),2) from t",
    "select first_value(a) over (order by d) from t",
    "select lag(a) over (order by d) from t",
    "select lag(a, 1) over (order by d) from t",
    "select t.a from t where t.a = 1",
    "select a from t order by 1 desc",
    "select * replace (a+1 as a) from t",
    "select * rename (a as z) from t",
    "select ntile(2) over (order by a) from t",
    "select quantile_cont(a, 0.5) from t",
    "select a from t where a = any (select a from t)",
    "select strftime(d, '%Y-%m') from t",
    "select greatest(a,2), coalesce(a,0), nullif(a,1), ifnull(a,9) from t",
    "select concat_ws('-', a, a), left(\"b c\",1), replace(\"b c\",'x','q'), lpad(\"b c\",3,'*') from t",
    "select time '10:00:00' x, timestamp '2024-01-01 10:00:00' y",
    "select a from t where \"b c\" rlike '^x'",
    "select a from t where \"b c\" ~ '^x'",
    "select count(a) n, min(d), max(d) from t",
    "select a from t union select a from t order by a",
    "select x.n from (select count(*) n from t) x",
    "select a, sum(a) from t group by 1 order by 1",
    "select 'it''s', 'a\\b' from t",
    "select median(a) from t",
]


ROWS = pl.DataFrame(
    {
        "a": [1, 2, 3, None],
        "carrier": ["x", "yx", None, "it's"],
        "b c": ["x", "yx", None, "\\n"],
        "s": [{"x": 3}] * 4,
        "d": [date(2024, 1, i) for i in (1, 2, 3, 31)],
        "l": [[1, 2], [3], [], None],
    }
)


@pytest.mark.parametrize("text", RUNS)
def test_a_select_of_the_table_runs_as_it_was_written(text: str) -> None:
    with pl.SQLContext(t=ROWS, flights=ROWS, eager=True) as context:
        assert_frame_equal(context.execute(query(text, ["flights"]).text), context.execute(text), check_row_order=False)


ODD_NAMES = [
    "a b", 'q"uote', "back`tick", "\u00fcn\u00ef", "select", "date", "if", "any", "Month", "", "a.b", "a,b",
    "it's", "new\nline", "\\", "--c", "/*", "%", "TRUE", "NULL", "current_date", "x'", "1a", "\U0001f600", "t",
    "$1", "?", ":p", "\x01", "interval", "values", "exists", "not", "^", "offset", "a*",
]  # fmt: skip
UNNAMEABLE = ["*", "^x$", "^.*$", "a\0b", "n" * 201]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_first_query_selects_a_column_of_any_name(name: str) -> None:
    rows = pl.DataFrame({n: [i] for i, n in enumerate([*UNNAMEABLE, name])})
    with pl.SQLContext(t=rows, eager=True) as context:
        assert_frame_equal(context.execute(query(first_query(rows.columns)).text), rows[[name]])
        assert_frame_equal(context.execute(query(with_column("select", name) + " from t").text), rows[[name]])


def test_the_first_query_of_columns_that_cannot_be_named_selects_all() -> None:
    assert not any(map(is_nameable, UNNAMEABLE))
    assert first_query(UNNAMEABLE) == "SELECT *\nFROM t\nLIMIT 100"


def test_the_first_query_of_many_columns_selects_the_first() -> None:
    assert first_query([f"c{n}" for n in range(30)]) == "SELECT c0, c1, c2, c3, c4, c5, c6, c7\nFROM t\nLIMIT 100"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "`a b`"),
        ("select a from t where", "select a from t where `a b`"),
        ("select a from t where ", "select a from t where `a b`"),
        ("SELECT a\nFROM t\nLIMIT 100", "SELECT a, `a b`\nFROM t\nLIMIT 100"),
        ("SELECT *\nFROM t\nLIMIT 100", "SELECT `a b`\nFROM t\nLIMIT 100"),
        ("SELECT `a b`\nFROM t\nLIMIT 100", "SELECT `a b`\nFROM t\nLIMIT 100"),
    ],
)
def test_a_column_is_added_to_a_query(text: str, expected: str) -> None:
    assert with_column(text, "a b") == expected


@pytest.mark.parametrize(
    ("text", "is_rowwise"),
    [
        ("select * from t", True),
        ("select a + 1 as b, upper(carrier) from t as x where x.a in (1, 2) limit 10", True),
        ("select array_sum(l), case when a > 1 then 1 end from t", True),
        ("select count(*) from t", False),
        ("select max(a) filter (where a > 1) from t", False),
        ("select a from t order by a", False),
        ("select a from t limit 3 offset 1", False),
        ("select distinct a from t", False),
        ("select a from t group by a", False),
        ("select lag(a) over (order by d) from t", False),
        ("select a from t qualify row_number() over (order by a) = 1", False),
        ("select x.a from t x join t y on x.a = y.a", False),
        ("select * from t, t u", False),
        ("select a from t where a in (select a from t u)", False),
        ("select a from (select a from t) x", False),
        ("with r as (select * from t) select * from r", False),
        ("select a from t union all select a from t", False),
        ("select 1 as one", False),
    ],
)
def test_any_rows_are_a_part_of_the_answer_where_each_is_made_of_one_row(text: str, *, is_rowwise: bool) -> None:
    assert query(text).is_rowwise is is_rowwise


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
    "a file by its function": ("select * from read_csv('/etc/passwd')", "read_csv is no function of a query"),
    "in capitals": ("select * from READ_PARQUET('x')", "READ_PARQUET is no function of a query"),
    "with a comment between": ("select * from read_ipc/**/('x')", "read_ipc is no function of a query"),
    "behind nested comments": (
        "/* /* */ select 1 */ select * from read_json('x')",
        "read_json is no function of a query",
    ),
    "quoted": ("select * from \"read_csv\"('x')", "read_csv is no function of a query"),
    "back-quoted": ("select * from `read_csv`('x')", "read_csv is no function of a query"),
    "in a CTE": ("with r as (select * from read_json('x')) select * from r", "read_json is no function of a query"),
    "in a union": ("select * from t union select * from read_ipc('x')", "read_ipc is no function of a query"),
    "in a join": ("select * from t join read_parquet('x') r on true", "read_parquet is no function of a query"),
    "of a schema": ("select * from public.read_csv('x')", "read_csv is no function of a query"),
    "an address of a network": (
        "select * from read_parquet('http://127.0.0.1:1/x')",
        "read_parquet is no function of a query",
    ),
    "a scan": ("select * from scan_parquet('x')", "scan_parquet is no function of a query"),
    "a file by its name": ("select * from '/etc/passwd.csv'", "there is no table"),
    "a file in quotes": ('select * from "/etc/x.parquet"', "there is no table"),
    "another function": ("select * from glob('/*')", "glob is no function of a query"),
    "endless rows": ("select * from generate_series(1, 100000000000)", "is no"),
    "UNNEST": ("select * from unnest([1, 2]) as u", "UNNEST is no part"),
    "LATERAL": ("select * from t, lateral other('x')", "LATERAL is no part"),
    "another table": ("select (select max(a) from z) from t", "there is no table z here"),
    "another schema": ("select * from a.t", "there is no table a.t here"),
    "deep nesting": (f"select {'(' * 5_000}1{')' * 5_000}", "nested too deep"),
    "a long chain": (f"select {' + '.join(['1'] * 3_000)}", "nested too deep"),
    "membership of membership": (f"select * from t where a{' in (1)' * 2_400}", "nested too deep"),
    "ranges of ranges": (f"select * from t where a{' between 1 and 2' * 450}", "nested too deep"),
    "too long": (f"select '{'x' * 30_000}'", "the query has 30,009 characters"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_no_select_of_the_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        query(text, ["flights"])
    assert message in refused.value.message
    assert (refused.value.kind, refused.value.place) == ("bad-query", "sql")
    assert refused.value.fix


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("select * from t", None),
        ("select * from t where month = 3 and name like 'x%' order by 1", '"month" = 3 AND "name" LIKE \'x%\''),
        ("select a from t x where x.a = 1 and `b c` = 'y'", '"a" = 1 AND "b c" = \'y\''),
        ("select * from t where s.x = 3 -- a remark", '"s"."x" = 3'),
        ("select * from t where a in (select a from t)", None),
        ("select * from t join t u on t.a = u.a where t.a = 1", None),
        ("with r as (select 1 as a) select * from r where a = 1", None),
        ("select * from (select a + 1 as a from t) where a = 1", None),
        ("select * from t where a = 1 union all select * from t", None),
    ],
)
def test_the_condition_on_the_table_is_told_apart(text: str, where: str | None) -> None:
    assert query(text).where == where


READERS = {"parquet": "write_parquet", "csv": "write_csv", "ipc": "write_ipc", "json": "write_ndjson"}


@pytest.mark.parametrize(("kind", "writer"), READERS.items())
def test_a_plan_that_reads_another_file_is_seen(kind: str, writer: str, tmp_path: Path) -> None:
    """Should the words above ever miss one, the plan that polars made of it tells."""
    rows = pl.DataFrame({"a": [1]})
    file = tmp_path / f"x.{kind}"
    getattr(rows, writer)(file)
    query = f"select t.a from t union all select a from read_{kind}('{file}')"
    plan = pl.SQLContext(t=rows.lazy()).execute(query, eager=False).explain(optimized=False)
    assert [name.lower().removeprefix("nd") for name in sources_refused(plan)] == [kind]


@pytest.mark.parametrize("text", [text for text in RUNS if "flights" not in text])
def test_a_plan_of_the_table_alone_is_let_through(text: str) -> None:
    plan = pl.SQLContext(t=ROWS.lazy()).execute(text, eager=False).explain(optimized=False)
    assert sources_refused(plan) == []
