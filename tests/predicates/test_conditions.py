"""What a text typed into a form, a link or a table's log may and may not ask for, and that polars reads it alike."""

from __future__ import annotations

from datetime import UTC, date, datetime

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeview.model.errors import InvalidRequestError
from lakeview.predicates import predicate
from lakeview.predicates.condition import constraint_expression, null_comparison_hint, translate
from lakeview.predicates.joins import qualify

ENDLESS = {
    "a long chain": " AND ".join(["a = 1"] * 60_000),
    "a chain of AND in a chain of OR": " OR ".join(["a = 1 AND b = 2"] * 4_000),
    "a chain behind a name with a quote": "`'` = 1 AND " + " AND ".join(["a = 1"] * 60_000),
    "a long sum": "id" + " + 1" * 20_000 + " = 1",
    "a long denial": "NOT " * 20_000 + "a",
    "membership of membership": "b" + " IN (TRUE)" * 60_000,
    "membership, fewer": "b" + " IN (TRUE)" * 1_200,
    "remainders of remainders": "a" + " % 3" * 1_500 + " = 1",
    "patterns of patterns": "s" + " RLIKE 'a'" * 60_000,
    "time zones of time zones": "s" + " AT TIME ZONE 'UTC'" * 60_000,
    "ranges of ranges": "a" + " BETWEEN 1 AND 2" * 40,
    "parts of parts": "SPLIT_PART(" * 20 + "s" + ", 'a', 1)" * 20 + " = 'x'",
    "logarithms of logarithms": "LN(" * 39 + "a" + ")" * 39 + " > 1",
    "terms that repeat themselves": " OR ".join(["NULLIF(" * 14 + "a" + ", 1)" * 14 + " > 1"] * 20),
    "brackets": "(" * 60_000,
    "types of types": "DATE (" * 39 + "1" + ")" * 39,
    "many types of types": " AND ".join(["DATE (" * 9 + "1" + ")" * 9] * 900),
    "subscripts of subscripts": "a" + "[0]" * 20_000 + " = 1",
    "texts put together of many": "CONCAT(" + "a, " * 60_000 + "a) = 'x'",
    "casts of casts": "a" + "::int" * 20_000 + " = 1",
    "a long name": "a = '" + "x" * 500_000 + "'",
    "negations": "- " * 20_000 + "1 = a",
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=list(ENDLESS))
@pytest.mark.parametrize("expected", [predicate, constraint_expression])
def test_a_condition_that_would_take_the_stack_or_all_memory_is_refused(text: str, expected: object) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        expected(text)  # type: ignore[operator]
    assert len(refused.value.message) < 1_000
    assert refused.value.fix


def test_an_argument_that_a_form_prints_twice_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes: list[object] = []
    monkeypatch.setattr("lakeview.predicates.condition.check_arguments", nodes.append)
    predicate("REPLACE(s, 'x', " * 8 + "s" + ")" * 8 + " = 'x'")
    assert len(nodes) == 8 * 3 + 3


NO_CONDITIONS = {
    "a subquery": ("carrier IN (SELECT zz FROM read_csv('/etc/passwd'))", "IN takes no query"),
    "a table behind IN": ("a IN read_csv('/etc/passwd')", "IN takes no field"),
    "a query as a value": ("(SELECT 1) = a", "a subquery is no part"),
    "EXISTS": ("EXISTS (SELECT 1 FROM read_csv('/etc/passwd'))", "EXISTS is no part"),
    "a query behind ANY": ("a = ANY (SELECT zz FROM read_parquet('http://127.0.0.1:1/x'))", "ANY is no part"),
    "a query in a list": ("a IN (1, (SELECT 1))", "no columns or queries"),
    "a query in a function": ("ABS((SELECT 1 FROM '/etc/passwd')) = 1", "a subquery is no part"),
    "a query in a CASE": ("CASE WHEN a = 1 THEN (FROM '/etc/passwd') END = 1", "a subquery is no part"),
    "a query in a cast": ("CAST((TABLE x) AS INT) = 1", "a subquery is no part"),
    "a table function": ("READ_CSV('/etc/passwd') = a", "READ_CSV is no part"),
    "a table function in another case": ("Read_Parquet('/etc/passwd') = a", "READ_PARQUET is no part"),
    "a table function in quotes": ("\"read_ipc\"('/etc/passwd') = a", "read_ipc is no function"),
    "a scan": ("scan_csv('/etc/passwd') = a", "scan_csv is no function"),
    "an unknown function": ("GETENV('HOME') = s", "GETENV is no function"),
    "a function of a schema": ("pg_catalog.read_csv('/etc/passwd') = a", "a star or a pattern"),
    "an aggregate": ("SUM(a) > 1", "SUM is no part"),
    "a window": ("ROW_NUMBER() OVER () = 1", "a window function is no part"),
    "rows of a list": ("UNNEST(a) = 1", "is no part"),
    "a series": ("GENERATE_SERIES(1, 1000000000000) = a", "GENERATE_SERIES is no part"),
    "the clock": ("CURRENT_TIMESTAMP > d", "CURRENT_TIMESTAMP is no part"),
    "another clock": ("NOW() > d", "is no"),
    "chance": ("RANDOM() > 0.5", "RAND is no part"),
    "a comparison of a comparison": ("f = b > a", "more than one meaning"),
    "a range of a comparison": ("a = 1 = b BETWEEN 2 AND 3", "more than one meaning"),
    "a denial of such": ("NOT f = b > a", "more than one meaning"),
    "a statement": ("DROP TABLE x", "stopped at 'DROP'"),
    "two statements": ("a = 1; b = 2", "more than one statement"),
    "a query alone": ("SELECT 1", "stopped at 'SELECT'"),
    "nothing": (" ", "is empty"),
    "a comment alone": ("-- a = 1", "is empty"),
    "no SQL": ("a >", "cannot be read"),
    "an open quote": ("s = 'x", "cannot be read"),
    "a parameter": ("a = ?", "a parameter is no part"),
    "a name for it": ("a = 1 AS b", "ALIAS is no part"),
    "a text with escapes": (r"s = E'\x41'", "is no part"),
    "a text in dollars": ("s = $$x$$", "is no part"),
    "a struct": ("{'a': 1} = s", "STRUCT is no part"),
    "a list": ("[1, 2] = s", "ARRAY is no part"),
    "a nested type": ("CAST(a AS STRUCT(x INT)) = b", "STRUCT is no type to cast to"),
    "a pattern with an escape of its own": ("s LIKE 'a!%' ESCAPE '!'", "ESCAPE is no part"),
    "several patterns": ("s LIKE ANY ('a', 'b')", "is no part|one pattern"),
    "ends in any order": ("a BETWEEN SYMMETRIC 3 AND 1", "takes no symmetric|BETWEEN SYMMETRIC"),
    "a star": ("* = 1", "is no part"),
    "a star of a struct": ("s.* = 1", "a star"),
    "a pattern of names": ('"^x$" = 1', "may stand for more than one column"),
    "a pattern of nested names": ('s."^x$" = 1', "may stand for more than one column"),
    "a function of names": ("COLUMNS('.*') = 1", "COLUMNS is no part"),
    "a padded text": ("LPAD('x', 10000000000) = s", "PAD of constants"),
    "texts put into texts": ("REPLACE(" * 5 + "'aa'" + ", 'a', 'aaaaaaaaaa')" * 5 + " = s", "REPLACE of constants"),
    "joined texts": ("ARRAY_TO_STRING(ARRAY['a', 'b'], 'x') = s", "ARRAY_TO_STRING is no part"),
    "a padded text below very much": (" OR ".join(["a = 1"] * 650) + " OR RPAD('x', 9) = s", "PAD of constants"),
}


@pytest.mark.parametrize(("text", "message"), NO_CONDITIONS.values(), ids=list(NO_CONDITIONS))
def test_what_a_condition_may_not_hold_is_refused_by_name(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(text: str) -> pl.Expr:
        raise AssertionError(f"polars was given {text}")

    monkeypatch.setattr(pl, "sql_expr", never)
    with pytest.raises(InvalidRequestError, match=message) as refused:
        predicate(text)
    assert (refused.value.kind, refused.value.place) == ("bad-predicate", "where")


def test_a_constant_that_polars_cannot_read_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="is no condition"):
        predicate("d = DATE 'yesterday'")


ROWS = pl.DataFrame(
    {
        "a": [1, 2, -3, None, 0, 7],
        "b": [2.5, None, -1.0, float("nan"), 0.0, 7.0],
        "s": ["it's", "a%b", None, "", "x-y-z", "\\n"],
        "d": [date(2024, 1, 31), None, date(2023, 12, 31), date(2024, 2, 29), date(1970, 1, 1), date(2024, 1, 1)],
        "t": [datetime.fromisoformat(f"2024-01-31T10:0{i}") for i in range(6)],
        "f": [True, False, None, True, False, None],
        "s t`r": [{"x": 1, 'y"z': "q"}, None, {"x": 3, 'y"z': None}, None, None, {"x": None, 'y"z': "r"}],
    },
    schema_overrides={"t": pl.Datetime("us")},
)

ALIKE = [
    "a = 1 OR a > 2 AND NOT b < 0", "NOT (a = 1 OR b = 2)", "a <> 1", "a != 1", "a IN (1, -3, NULL)",
    "a NOT IN (1, 2)", "a NOT IN (1, NULL)", "s IN ('a%b', '')", "d IN (DATE '2024-01-01')",
    "a BETWEEN -3 AND 1", "b NOT BETWEEN -1 AND 3",
    "s LIKE 'a%'", "s NOT LIKE '%-%'", "s ILIKE 'X-_-%'", "s LIKE '%''%'", "a IS NULL", "b IS NOT NULL", "f IS TRUE",
    "f IS DISTINCT FROM TRUE", "f", "NOT f", "a IS NOT DISTINCT FROM NULL", "a + 1 > 2 * 3 - 4", "a / 2 = 1",
    "a // 2 = 1",
    "a % 3 = 1", "-a = 3", "a = -(-1)", "b > 1e-1", "b >= .5", "a > 99999999999", "s || 'x' = 'x'", "s = 'it''s'",
    r"s = '\n'", "CAST(a AS DOUBLE) > 1.5", "a::VARCHAR = '7'", "TRY_CAST(s AS INT) IS NULL", "d >= DATE '2024-01-01'",
    "CAST(a AS DECIMAL(10, 2)) = 7", "t > TIMESTAMP '2024-01-31 10:02:00'",
    "t > CAST('2024-01-31 10:02:00' AS TIMESTAMP)",
    "d + INTERVAL '1 day' > DATE '2024-01-31'", "t - INTERVAL '2 minutes' >= TIMESTAMP '2024-01-31 10:02:00'",
    "CASE WHEN a = 1 THEN 2 WHEN f THEN 3 ELSE 4 END = 2", "CASE a WHEN 1 THEN TRUE END", "IF(a = 1, 2, 3) = 2",
    "COALESCE(a, 0) = 0", "IFNULL(a, 9) = 9", "NULLIF(a, 1) IS NULL", "GREATEST(a, 2) = 2", "LEAST(a, 0) = 0",
    "ABS(a) = 3", "SIGN(a) = -1", "CEIL(b) = 3", "FLOOR(b) = 2", "ROUND(b, 0) = 2", "SQRT(a) > 1", "POW(a, 2) = 9",
    "EXP(a) > 1", "LN(ABS(a) + 1) > 0", "LOG10(ABS(a) + 1) > 0", "MOD(a, 2) = 1",
    "UPPER(s) = 'X-Y-Z'", "LOWER(s) = 'x-y-z'",
    "LENGTH(s) = 3", "CHAR_LENGTH(s) = 3", "OCTET_LENGTH(s) = 3", "LEFT(s, 2) = 'a%'", "RIGHT(s, 1) = 'z'",
    "SUBSTR(s, 2, 1) = '-'", "SUBSTRING(s, 2) = '%b'", "STARTS_WITH(s, 'a')", "ENDS_WITH(s, 'z')", "STRPOS(s, '-') > 0",
    "SPLIT_PART(s, '-', 2) = 'y'", "TRIM(s) = ''", "LTRIM(s, 'x') = '-y-z'", "RTRIM(s, 'z') = 'x-y-'",
    "CONCAT(s, '!') = 'a%b!'", "REPLACE(s, '-', '') = 'xyz'", "LPAD(s, 6, '0') = '0x-y-z'", "REGEXP_LIKE(s, '^x')",
    "s RLIKE '-.-'", "YEAR(d) = 2024", "QUARTER(d) = 1", "MONTH(d) = 1", "DAY(d) = 31", "HOUR(t) = 10", "MINUTE(t) = 3",
    "EXTRACT(YEAR FROM d) = 2024", "EXTRACT(DOW FROM d) = 3", "DATE_PART('month', d) = 2", "DATE('2024-01-31') = d",
    '"s t`r".x = 1', '`s t``r`."y""z" = \'q\'', "TRUE", "1 = 2", "a = NULL", "a = b", "a < b AND b < 100",
    "f = (b > a)", "(a > 1) = f", "a = 1 AND NULL AND NULL", "a = 1 OR NULL OR NULL", "TRIM(BOTH 'x' FROM s) = '-y-z'",
    "s ~* '^X'", "REGEXP_LIKE(s, '^X', 'i')", "REVERSE(s) = 'z-y-x'", "a & 1 = 1", "a | 1 = 3",
    "s IN (" + ", ".join(f"'{i}'" for i in range(3_000)) + ", 'a%b')",
    " AND ".join(["a BETWEEN 1 AND 2"] * 250), " OR ".join(f"s LIKE '{i}%'" for i in range(500)),
]  # fmt: skip


@pytest.mark.parametrize("text", ALIKE, ids=[text[:50] for text in ALIKE])
def test_a_condition_means_what_it_means_to_polars(text: str) -> None:
    assert ROWS.filter(predicate(text)).equals(ROWS.filter(pl.sql_expr(text)))


@pytest.mark.parametrize(
    "text",
    [
        "STRPOS(s, 'y')", "STRPOS(s, p)", "LEFT(s, n)", "SUBSTR(s, 1, n)", "SPLIT_PART(s, p, 1)",
        "SPLIT_PART(s, '-', n)",
        "LTRIM(s, p)", "RTRIM(s, p)", "REPLACE(s, '-', p)", "CONCAT(s)", "CONCAT(s, '!')", "CONCAT(n, s, p)",
        "CONCAT(p, CONCAT(s = p, n))", "CONCAT(s, NULL)", "STRPOS(s, NULL)", "REPLACE(s, '', p)",
    ],
)  # fmt: skip
def test_a_function_of_null_is_null_as_in_other_engines(text: str) -> None:
    """To polars a text that is null holds 'y' at 0, and is nothing that is put together with others."""
    point = {"s": "x-y", "p": "x", "n": 1}
    rows = pl.DataFrame([point, *({**point, name: None} for name in point)])
    values = rows.select(value=predicate(text))["value"]
    names = {*predicate(text).meta.root_names()}
    assert values.is_null().to_list() == ["NULL" in text, *("NULL" in text or name in names for name in point)]
    assert values.to_list() == [
        row[0] for row in duckdb.sql(f"SELECT {translate(text, 'duckdb')} FROM rows").fetchall()
    ]
    alone = [rows[k : k + 1].select(value=predicate(text)).item() for k in range(rows.height)]
    assert alone == values.to_list()


@pytest.mark.parametrize("moment", ["2024-01-31 11:02:00+01:00", "2024-01-31T10:02Z", "2024-01-31 05:02:00-0500"])
def test_a_timestamp_with_an_offset_is_a_moment_in_utc(moment: str) -> None:
    """To polars it is the time without the offset: another moment."""
    moments = ROWS.select(pl.col("t").dt.replace_time_zone("UTC"))
    expected = [datetime(2024, 1, 31, 10, 2, tzinfo=UTC)]
    assert moments.filter(predicate(f"t = TIMESTAMP '{moment}'"))["t"].to_list() == expected
    with pytest.raises(pl.exceptions.PolarsError):  # a time of no zone is no moment
        ROWS.filter(predicate(f"t = TIMESTAMP '{moment}'"))


NUMBERS = st.sampled_from(["a", "b", "0", "1", "-3", "2.5", "a + 1", "b * a", "(a - b)", "-a", "COALESCE(a, 1)"])
TEXTS = st.sampled_from(["s", "'it''s'", "''", "UPPER(s)", "s || '-'"])
LEAVES = st.one_of(
    st.tuples(NUMBERS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["=", "<>", "<", "|| s ="]), TEXTS).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"])).map(lambda t: f"{t[0]} {t[1]} '%t_'"),
    st.tuples(NUMBERS, st.sampled_from(["IS NULL", "IS NOT NULL", "BETWEEN 0 AND 3", "NOT BETWEEN 0 AND 3"])).map(
        lambda t: f"({t[0]}) {t[1]}"
    ),
    st.sampled_from(
        ["a IN (1, 2)", "a NOT IN (1, NULL)", "s NOT IN ('', 'x')", "f", "(f IS DISTINCT FROM TRUE)", "TRUE"]
    ),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(" ".join),
        inner.map("NOT ({})".format),
        inner.map("({})".format),
        inner.map("NOT {}".format),
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(CONDITIONS)
def test_operators_bind_as_they_do_for_polars(text: str) -> None:
    assert ROWS.lazy().filter(predicate(text)).collect().equals(ROWS.lazy().filter(pl.sql_expr(text)).collect())


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab1 '\"`()=<>.,*-+/\\^$[]{};:?%|\0é\n") | st.characters(), max_size=40))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        condition = predicate(text)
    except InvalidRequestError:
        return
    assert not condition.meta.has_multiple_outputs()


def test_names_stand_for_themselves() -> None:
    for name in ("a.b", 'q"q', "b`t", "it's", "--x", "/*", "^a", "a$", "select", "é\n", " "):
        rows = pl.DataFrame({name: [1, 2]})
        quoted = f'"{name.replace(chr(34), chr(34) * 2)}"'
        assert rows.filter(predicate(f"{quoted} = 2")).height == 1, name


@pytest.mark.parametrize("name", ["load", "comment", "update", "show", "set", "optimize", "kill"])
def test_a_condition_begins_with_a_column_that_is_named_as_a_statement_begins(name: str) -> None:
    assert str(predicate(f"{name} = 2")) == str(predicate(f'"{name}" = 2')) == str(constraint_expression(f"{name} = 2"))


def test_a_constraint_is_read_in_the_dialect_of_spark() -> None:
    assert str(constraint_expression("`a` <=> 1")) == str(predicate("a IS NOT DISTINCT FROM 1"))
    assert str(constraint_expression('s = "it\'s"')) == str(predicate("s = 'it''s'"))
    assert str(constraint_expression("YEAR(t) = 2024")) == str(predicate("YEAR(CAST(t AS DATE)) = 2024"))
    with pytest.raises(InvalidRequestError, match="two texts follow each other"):
        constraint_expression("s = 'it''s'")


@pytest.mark.parametrize(
    "text",
    ["a > ROUND(2.5)", "s = SUBSTRING('abc', -1)", "s = LEFT('abc', -1)", "a = EXTRACT(DOW FROM d)",
     "a = CAST(2.5 AS DECIMAL)", r"s LIKE 'x\\%'"],
)  # fmt: skip
def test_a_constraint_is_not_evaluated_where_spark_evaluates_it_otherwise(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="Spark"):
        constraint_expression(text)


def test_a_condition_is_printed_for_another_engine() -> None:
    assert translate("`a b` = 1 /* ; */ AND s LIKE 'x%' -- y", "duckdb") == "\"a b\" = 1 AND s LIKE 'x%'"
    assert translate("\"a b\" = 'it''s'", "spark") == "`a b` = 'it\\'s'"
    assert translate("s = '${env:HOME}'", "spark") == r"s = '$\u007benv:HOME}'"
    assert translate("a / b > c % 2", "spark") == "a / NULLIF(b, 0) > c % 2"
    assert (
        translate("CONCAT(s, '!', a = 1) = '!'", "spark")
        == "(CAST(s AS STRING) || ('!' || CAST(a = 1 AS STRING))) = '!'"
    )
    at = "t < TIMESTAMP '2026-03-08 07:00:00{}'"
    zoned = "t < CAST('2026-03-08 07:00:00+02:00' AS TIMESTAMP_LTZ)"
    assert translate(at.format("+02:00"), "spark") == zoned
    assert translate("t < TIMESTAMPTZ '2026-03-08 07:00:00+02:00'", "spark") == zoned
    assert translate(at.format(""), "spark") == "t < CAST('2026-03-08 07:00:00' AS TIMESTAMP_NTZ)"
    with pytest.raises(InvalidRequestError):
        translate("TRUE; COPY t TO '/tmp/x'", "duckdb")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flag", '"source".flag'),
        ("op = 'D' AND `a.b` > 1", """"source".op = 'D' AND "source"."a.b" > 1"""),
        ("s.x.y IS NULL", '"source".s.x.y IS NULL'),
    ],
)
def test_each_column_of_a_text_is_of_the_side_that_a_qualifier_names(text: str, expected: str) -> None:
    assert qualify(text, "source") == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a = NULL", "a = NULL is true for no row: write a IS NULL"),
        ("a > 1 AND (null) <> `s t`", '(NULL) <> "s t" is true for no row: write "s t" IS NOT NULL'),
        ("a IS NOT NULL AND b <=> NULL OR a IN (1, NULL)", None),
        ("NULL = NULL OR s = 'NULL'", None),
    ],
)
def test_a_comparison_with_null_comes_with_what_to_write(text: str, hint: str | None) -> None:
    assert null_comparison_hint(text) == hint
