"""`lakeview share`: a server that shares tables, and the tokens of those who may read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakeview.cli.text import duration, echo_frame
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import printable

if TYPE_CHECKING:
    from lakeview.sharing.server.settings import Settings
    from lakeview.sharing.server.tokens import TokenFile


def _now() -> datetime:
    return datetime.now(UTC)


def _duration(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """`90d`, `12h`, `30m`; None without one or for `never`."""
    return None if text is None or text == "never" else duration(text, "smhd", "90d, 12h, 30m or never")


def _span(_: click.Context, __: click.Parameter, text: str) -> timedelta:
    """`24h`; one that never ends would be none."""
    return duration(text, "smhd", "90d, 12h or 30m")


@click.group()
def share() -> None:
    """Share tables with others over the Delta Sharing protocol."""
    from lakeview.sharing.server import require_extra

    require_extra()


@share.command()
@click.argument("source")
@click.option("--host", help="The interface to listen on; the configuration's, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Its port; the configuration's, else 8080.")
@click.option(
    "--profile", type=click.Path(dir_okay=False, path_type=Path),
    help="For a folder: where to write the profile that opens the share, readable by its owner only.",
)  # fmt: skip
def serve(source: str, host: str | None, port: int | None, profile: Path | None) -> None:
    """Serve a YAML configuration, or every table below a folder.

    A folder is shared with one token that is made at each start; a configuration names its shares and recipients.
    """
    import msgspec

    from lakeview.sharing.server.config_file import folder_settings, read_settings
    from lakeview.sharing.server.hub import Hub, open_folder
    from lakeview.sharing.server.serving import check_exposure, free_port
    from lakeview.sharing.server.serving import serve as run
    from lakeview.sharing.server.tokens import endpoint_of

    overrides = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    if source.endswith((".yaml", ".yml")):
        settings, warnings = read_settings(Path(source))
        for warning in warnings:
            click.echo(f"warning: {printable(warning)}", err=True)
        settings = msgspec.structs.replace(settings, **overrides)
        check_exposure(settings)
        hub = Hub(settings, config=Path(source))
    else:
        settings = msgspec.structs.replace(folder_settings(source), **overrides)
        check_exposure(settings)
        if settings.port == 0:
            settings = msgspec.structs.replace(settings, port=free_port(settings.host))
        hub, document = open_folder(settings, _now)
        _write_profile(document, profile)
    shares = ", ".join(s.name for s in hub.settings.shares)
    click.echo(f"sharing {printable(shares)} at {endpoint_of(hub.settings)}", err=True)
    run(hub)


def _write_profile(document: dict[str, Any], profile: Path | None) -> None:
    from lakeview.sharing.server.signing import write_privately

    text = json.dumps(document, indent=2)
    if profile is None:
        click.echo(text)
    else:
        write_privately(profile, text.encode() + b"\n")
        click.echo(f"the profile is in {profile}", err=True)


@share.group()
def token() -> None:
    """Give recipients tokens, and take them back. Only hashes are kept: a token is shown once."""


_config = click.argument("configuration", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_life = click.option("--expires", "life", callback=_duration, default="90d", show_default=True,
                     help="How long the token lives: 90d, 12h, 30m or never.")  # fmt: skip
_profile = click.option(
    "--profile", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the recipient's profile file here, readable by its owner only, instead of printing it.",
)  # fmt: skip


def _book(configuration: Path) -> tuple[Settings, TokenFile]:
    from lakeview.sharing.server.config_file import read_settings
    from lakeview.sharing.server.tokens import token_file

    settings, _ = read_settings(configuration)
    return settings, token_file(configuration, settings, _now)


def _give_profile(
    configuration: Path, recipient: str, profile: Path | None, make: Callable[[TokenFile], tuple[str, Any]]
) -> None:
    from lakeview.sharing.server.config_file import read_settings
    from lakeview.sharing.server.signing import write_privately
    from lakeview.sharing.server.tokens import new_profile

    settings, _ = read_settings(configuration)
    if profile is not None:
        _require_own_place(profile, configuration, settings)
    document, token = new_profile(configuration, settings, recipient, _now, make)
    try:
        if profile is not None:
            write_privately(profile, document)
    except (OSError, InvalidRequestError) as error:  # the token is made, and shown nowhere else
        reason = error.strerror if isinstance(error, OSError) else error
        click.echo(f"warning: {profile} cannot be written ({reason}), the profile is printed", err=True)
        profile = None
    if profile is None:
        click.echo(document.decode(), nl=False)
    click.echo(f"token {token.id} of {recipient}; it is not shown again", err=True)


def _require_own_place(profile: Path, configuration: Path, settings: Settings) -> None:
    """InvalidRequestError where a profile would take the place of a file that the server needs."""
    own_files = [configuration, *(Path(p) for p in (settings.tokens, settings.keys) if p is not None)]
    if profile.resolve() in [p.resolve() for p in own_files]:
        raise InvalidRequestError(
            f"{profile.name} is a file of the server's own", fix="write the profile to another place",
            kind="bad-address",
        )  # fmt: skip


@token.command()
@_config
@click.argument("recipient")
@_life
@_profile
def create(configuration: Path, recipient: str, life: timedelta | None, profile: Path | None) -> None:
    """Make a token for a recipient, and print its profile. A recipient has two live ones at most."""
    _give_profile(configuration, recipient, profile, lambda book: book.create(recipient, life))


@token.command()
@_config
@click.argument("recipient")
@_life
@click.option("--overlap", callback=_span, default="24h", show_default=True,
              help="How long the tokens before it still work; 0s ends them at once.")  # fmt: skip
@_profile
def rotate(
    configuration: Path, recipient: str, life: timedelta | None, overlap: timedelta, profile: Path | None
) -> None:
    """Make a token that takes the place of those before it."""
    _give_profile(configuration, recipient, profile, lambda book: book.rotate(recipient, life, overlap))


@token.command()
@_config
@click.argument("name")
def revoke(configuration: Path, name: str) -> None:
    """End a token by its id, or all tokens of a recipient by its name; URLs given before end with the last of them."""
    _, book = _book(configuration)
    for each in book.revoke(name):
        click.echo(f"revoked {each.id} of {printable(each.recipient)}")


@share.command("rotate-keys")
@_config
def rotate_keys(configuration: Path) -> None:
    """Sign with new keys from the next start on; what the present ones signed is accepted until it expires."""
    from lakeview.sharing.server.config_file import read_settings
    from lakeview.sharing.server.signing import load_keys, save_keys

    settings, _ = read_settings(configuration)
    if settings.keys is None:
        raise InvalidRequestError(
            f"{configuration.name} names no file of keys: each start makes its own", fix="add keys: keys.json",
            kind="bad-configuration",
        )  # fmt: skip
    place = Path(settings.keys)
    save_keys(place, load_keys(place).rotate())
    click.echo(f"new keys are in {place.name}; restart the server")


@token.command("list")
@_config
@click.option("--json", "machine", is_flag=True, help="Print JSON instead of text.")
def list_tokens(configuration: Path, machine: bool) -> None:
    """List the tokens: whose they are, since when, until when, and whether they live."""
    import polars as pl

    _, book = _book(configuration)
    now = _now()
    rows = [
        {"id": t.id, "recipient": t.recipient, "state": t.state(now), "created": t.created, "expires": t.expires}
        for t in book.tokens()
    ]
    moment = pl.Datetime("us", "UTC")
    shape = {"id": pl.String(), "recipient": pl.String(), "state": pl.String(), "created": moment, "expires": moment}
    echo_frame(pl.DataFrame(rows, schema=shape), machine, "no tokens")
