"""A configuration told to its operator: what is shared with whom, and tokens without the tokens."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.overview import RECIPIENTS, SHARED, TOKENS, ShareConfiguration
from tests.server.conftest import Clock
from tests.server.shared_lake import configuration, write_configuration


def configured(folder: Path, **more: object) -> ShareConfiguration:
    return ShareConfiguration.read(
        str(write_configuration(folder / "server.yaml", configuration(folder / "lake", **more)))
    )


def test_tables_are_told_with_who_reads_them_and_how_much_of_their_past(tmp_path: Path) -> None:
    document = configuration(tmp_path / "lake")
    document["shares"][0]["schemas"][0]["tables"][1]["startVersion"] = 2
    document["recipients"].append({"name": "eve", "shares": ["*"]})
    tables = ShareConfiguration.read(str(write_configuration(tmp_path / "server.yaml", document))).shared_tables()
    assert tables.schema == SHARED
    rows = {row["table"]: row for row in tables.iter_rows(named=True)}
    assert (rows["months"]["recipients"], rows["months"]["history"]) == ("ann, eve", "all versions")
    assert (rows["Secret"]["recipients"], rows["Secret"]["history"]) == ("bob, eve", "latest version only")
    assert rows["fed"]["history"] == "from v2 on"
    assert (rows["some"]["view"], rows["some"]["history"]) == ("id, month where id < 3", "latest version only")
    assert rows["months"]["view"] is None


def test_recipients_are_told_by_whether_they_can_read(tmp_path: Path) -> None:
    clock = Clock()
    overview = configured(tmp_path, authorization={"bearerToken": "the one"})
    overview.new_profile("ann", timedelta(days=1), clock)
    recipients = overview.recipients(clock)
    assert recipients.schema == RECIPIENTS
    assert recipients.select("recipient", "state", "live_tokens").rows() == [
        ("ann", "reads", 1), ("bob", "no token", 0), ("bearer", "reads", 0),
    ]  # fmt: skip
    clock.later(days=2)
    assert overview.recipients(clock)["state"].to_list() == ["no token", "no token", "reads"]
    assert overview.tokens(clock)["state"].to_list() == ["expired"]


def test_tokens_are_told_by_their_ids(tmp_path: Path) -> None:
    clock = Clock()
    overview = configured(tmp_path)
    document = overview.new_profile("bob", None, clock)
    tokens = overview.tokens(clock)
    assert tokens.schema == TOKENS
    assert tokens.select("recipient", "state", "expires").rows() == [("bob", "live", None)]
    assert tokens["id"][0].encode() not in document
    assert b"expirationTime" not in document


def test_a_configuration_without_a_file_of_tokens_has_none_and_makes_none(tmp_path: Path) -> None:
    overview = configured(tmp_path, tokens=None)
    assert overview.tokens(Clock()).is_empty()
    with pytest.raises(InvalidRequestError, match=r"server.yaml names no file of tokens"):
        overview.new_profile("ann", None, Clock())


def test_a_profile_is_made_for_recipients_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"server.yaml names no recipient eve"):
        configured(tmp_path).new_profile("eve", None, Clock())
