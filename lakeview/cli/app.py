"""`lakeview app`: the app in a browser, served from any folder."""

import subprocess
import sys
from pathlib import Path

import click

from lakeview.cli.commands import main


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The interface that the app listens on.")
@click.option("--port", default=8501, show_default=True, type=click.IntRange(0, 65535), help="Its port.")
def app(host: str, port: int) -> None:
    """Serve the app in a browser."""
    words = [
        sys.executable, "-m", "streamlit", "run", str(app_script()), "--server.address", host, "--server.port",
        str(port), "--server.headless", "true", "--browser.gatherUsageStats", "false",
    ]  # fmt: skip
    click.get_current_context().exit(subprocess.run(words, check=False).returncode)


def app_script() -> Path:
    """The app's script: in the package where it was installed, at the root of a checkout."""
    package = Path(__file__).resolve().parents[1]
    script = package / "_app" / "app.py"
    return script if script.is_file() else package.parent / "app.py"
