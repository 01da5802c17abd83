"""Microsoft's own emulator of Azure Blob Storage, where it is installed: `make azurite`, or on the PATH."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from hashlib import sha256
from hmac import new as hmac
from pathlib import Path

from lakeview.storage import Storage, open_storage

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that every copy of the emulator has, by its documentation."""


@dataclass(frozen=True)
class Azurite:
    """The emulator at a port of this machine."""

    port: int

    @property
    def options(self) -> dict[str, str]:
        """Storage options that lead there, in deltalake's spelling."""
        endpoint = f"http://127.0.0.1:{self.port}/{ACCOUNT}"
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY, "AZURE_STORAGE_ENDPOINT": endpoint,
        }  # fmt: skip

    def storage(self) -> Storage:
        """An empty folder in a container of its own."""
        name = f"lake-{uuid.uuid4().hex[:12]}"
        self._create(name)
        return open_storage(f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net/root", options=self.options)

    def _create(self, container: str) -> None:
        date = formatdate(usegmt=True)
        headers = {"x-ms-date": date, "x-ms-version": "2021-12-02"}
        canonical = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        text = "PUT" + "\n" * 12 + canonical + f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
        signature = b64encode(hmac(b64decode(KEY), text.encode(), sha256).digest()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(
            "PUT", f"/{ACCOUNT}/{container}?restype=container",
            headers=headers | {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"},
        )  # fmt: skip
        status = connection.getresponse().status
        connection.close()
        if status != 201:
            raise RuntimeError(f"azurite answered {status}")


@contextmanager
def azurite() -> Iterator[Azurite | None]:
    """The emulator, which ends with the block; None where it is not installed."""
    own = Path(sys.prefix) / "azurite/node_modules/.bin"
    command = shutil.which("azurite-blob", path=f"{own}{os.pathsep}{os.environ.get('PATH', '')}")
    if command is None:
        yield None
        return
    options = ["--blobPort", "0", "--blobHost", "127.0.0.1", "--skipApiVersionCheck", "--disableTelemetry"]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [command, *options, "--inMemoryPersistence"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=folder,
    ) as process:  # fmt: skip
        try:
            yield Azurite(_port(process))
        finally:
            process.terminate()


def _port(process: subprocess.Popen[str]) -> int:
    """The port that the emulator says it listens on."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "successfully listens on" in line:
            return int(line.rstrip("/\n ").rpartition(":")[2])
    raise RuntimeError(f"azurite does not start: {''.join(lines)}")
