"""Configurations as people leave them: half edited, written twice, misspelt. What narrows a share is never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.config_file import read_settings
from lakeview.sharing.server.signing import load_keys
from tests.server.conftest import Api
from tests.server.shared_lake import configuration, write_configuration

FILE = """
version: 1
shares:
- name: s
  schemas:
  - name: c
    tables:
    - name: t
      location: x
      {table}
recipients:
- name: ann
  shares: [s]
  {recipient}
"""


def read(folder: Path, *, table: str = "", recipient: str = "") -> None:
    path = folder / "server.yaml"
    path.write_text(FILE.format(table=table, recipient=recipient))
    read_settings(path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("view:", "server.yaml: shares.schemas.tables.view has no value"),
        ("view:\n      columns: [a]", "server.yaml: shares.schemas.tables.view has no value"),
        ("view: {columns: [a], where: }", "server.yaml: shares.schemas.tables.view.where has no value"),
        ("view: {columns: , where: 'a = 1'}", "server.yaml: shares.schemas.tables.view.columns has no value"),
        ("view: {colums: [a]}", "server.yaml: shares.schemas.tables.view.colums is not known here"),
        ("views: {columns: [a]}", "server.yaml: shares.schemas.tables.views is not known here"),
        ("where: a = 1", "server.yaml: shares.schemas.tables.where is not known here"),
        ("view: {}", "view t names neither columns nor a condition"),
        ("view: {columns: []}", "view t names no column, or one twice"),
        ("view: {columns: [a, A]}", "view t names no column, or one twice"),
        ("view: {where: a = 1, where: b = 1}", "where is there twice, in what begins at line 10"),
        ("view: {where: a = 1}\n      view: {columns: [b]}", "view is there twice, in what begins at line 8"),
        ("startVersion:", "server.yaml: shares.schemas.tables.startVersion has no value"),
        ("id: ../../etc", "'../../etc' is no id for table t"),
        ("id: a&sp=r", "'a&sp=r' is no id for table t"),
    ],
)
def test_a_table_that_may_have_been_meant_narrower_is_not_shared(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(tmp_path, table=table)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("recipient", "message"),
    [
        ("blocked:", "server.yaml: recipients.blocked has no value"),
        ("blockd: true", "server.yaml: recipients.blockd is not known here"),
        ("shares: ['*']", "shares is there twice, in what begins at line 12"),
        ("id: x&se=99999999999", "'x&se=99999999999' is no id for recipient ann"),
        ("id: bearer", "'ann' is no name for a recipient"),
        ("\n- name: Bearer", "'Bearer' is no name for a recipient"),
        ("\n- name: ''", "'' is no name for a recipient"),
        ('\n- name: "a\\nb"', "'a\\nb' is no name for a recipient"),
    ],
)
def test_a_recipient_that_may_have_been_meant_narrower_is_refused(tmp_path: Path, recipient: str, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(tmp_path, recipient=recipient)
    assert message in caught.value.message


def test_what_is_given_to_a_store_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    options = "storageOptions: {anon: null, cdfEnabled: 1, requestTimeoutSeconds: 5}"
    path.write_text(FILE.format(table=options, recipient=""))
    settings, _ = read_settings(path)
    (table,) = settings.shares[0].schemas[0].tables
    assert table.storage_options == {"anon": None, "cdfEnabled": 1, "requestTimeoutSeconds": 5}


def test_yaml_may_still_merge_mappings(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(FILE.format(table="<<: {view: {where: a = 1}, historyShared: true}", recipient=""))
    (table,) = read_settings(path)[0].shares[0].schemas[0].tables
    assert table.view is not None
    assert (table.view.where, table.history_shared) == ("a = 1", True)


@pytest.mark.parametrize("text", ["shares: &a [*a]\n", "&a {version: 1, x: *a}\n", "shares: " + "[" * 3000])
def test_a_file_that_never_ends_is_broken_and_fails_no_request(api: Api, text: str) -> None:
    api.config.write_text(text)
    api.clock.later(seconds=2)
    assert api.get("shares").status_code == 200


def test_a_view_that_is_cut_off_while_it_is_edited_stays_a_view(api: Api, lake: Path) -> None:
    document = configuration(lake)
    document["shares"][0]["schemas"][0]["tables"][-1]["view"] = None  # a file that ends after "view:" so far
    write_configuration(api.config, document)
    api.clock.later(seconds=2)
    assert len(api.files("some")) == 1


def test_a_share_for_all_is_no_name(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("shares: [{name: '*'}]")
    with pytest.raises(InvalidRequestError, match=r"'\*' is no name for a share"):
        read_settings(path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("limits: {apiRate: 0}", "limits.apiRate"),
        ("limits: {failuresBurst: -1}", "limits.failuresBurst"),
        ("limits: {stallSeconds: .nan}", "limits.stallSeconds"),
        ("limits: {filesRate: .inf}", "limits.filesRate"),
        ("auditSeconds: 0", "auditSeconds"),
        ("refreshTokenTtlMs: -5", "refreshTokenTtlMs"),
        ("loadAhead: -1", "loadAhead"),
    ],
)
def test_an_amount_that_would_stop_the_server_is_refused(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match=f"{name} must be more than nothing, and have an end"):
        read_settings(path)


def test_keys_that_others_can_read_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "keys.json"
    load_keys(path)
    assert caplog.text == ""
    path.chmod(0o644)
    load_keys(path)
    assert "keys.json can be read by others than its owner" in caplog.text
