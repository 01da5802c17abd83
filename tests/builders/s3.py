"""S3 on this machine, and folders copied into it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

REGION = "us-east-1"


@dataclass(frozen=True)
class Bucket:
    """A bucket of its own on a server of this machine. `endpoint`: the server's address."""

    name: str
    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        """Storage options that lead to it."""
        client = {"endpoint_url": self.endpoint, "region_name": REGION}
        return {"key": "an-id", "secret": "s3cr3t", "client_kwargs": client}

    @property
    def client(self) -> Any:
        """A client of another make, which looks from outside."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="an-id",
            aws_secret_access_key="s3cr3t",
        )

    def copy(self, folder: Path, below: str) -> str:
        """The address of a folder's copy."""
        client = self.client
        for path in folder.rglob("*"):
            if path.is_file():
                client.put_object(
                    Bucket=self.name, Key=f"{below}/{path.relative_to(folder).as_posix()}", Body=path.read_bytes()
                )
        return f"s3://{self.name}/{below}"


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of an S3 server on this machine that lets everybody in."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(endpoint: str) -> Bucket:
    """An empty bucket with a name of its own."""
    bucket = Bucket(f"lake-{uuid.uuid4().hex[:12]}", endpoint)
    bucket.client.create_bucket(Bucket=bucket.name)
    return bucket
