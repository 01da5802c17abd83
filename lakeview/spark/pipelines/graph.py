"""The flows of a pipeline to what each reads: addresses, read versions, and other datasets of the pipeline."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from lakeview.model.addresses import is_absolute, normalise
from lakeview.spark.option_values import access_of
from lakeview.storage.access import StoreAccess

FORMAT = "lakeview"


class Input(msgspec.Struct, frozen=True):
    """Something outside of the pipeline that a flow reads. `version`: the one that a batch read is pinned at;
    `starting`: the first whose commits a stream reads, None where it begins with all rows."""

    address: str
    format: str
    streams: bool
    version: int | None = None
    starting: int | None = None


class FlowNode(msgspec.Struct, frozen=True):
    """A flow: the dataset that it writes, what it reads from outside, and the pipeline's datasets that it reads."""

    target: str
    inputs: tuple[Input, ...]
    datasets: tuple[str, ...]
    name: str = ""


class Graph(msgspec.Struct, frozen=True):
    """A pipeline as its files define it. `sinks`: name -> path, of our format; `sink_options`: name -> the options
    `storage.<name>` of a sink that has any; `input_options`: address -> those of a lakeview table that flows read;
    `datasets`: tables and materialized views; `has_sql`: SQL files define more of them; `evolving_sinks`: those that
    may get columns by a run."""

    sinks: dict[str, str] = {}
    datasets: tuple[str, ...] = ()
    flows: tuple[FlowNode, ...] = ()
    sink_options: dict[str, dict[str, str]] = {}
    input_options: dict[str, dict[str, str]] = {}
    temporary_views: tuple[str, ...] = ()
    has_sql: bool = False
    evolving_sinks: tuple[str, ...] = ()

    def access_to(self, sink: str | None) -> StoreAccess:
        """What the table of a sink is opened with."""
        return access_of(self.sink_options.get(sink or "", {}))

    def access_to_input(self, address: str) -> StoreAccess:
        """What a table that flows read is opened with."""
        return access_of(self.input_options.get(address, {}))

    def inputs_of(self, name: str) -> tuple[Input, ...]:
        """What a dataset or sink is made of, through every dataset of the pipeline in between."""
        inputs: dict[Input, None] = {}
        pending, targets = [name], set()
        while pending:
            target = pending.pop()
            if target not in targets:
                targets.add(target)
                for flow in self.flows:
                    if same_dataset(flow.target, target):
                        inputs |= dict.fromkeys(flow.inputs)
                        pending += flow.datasets
        return tuple(inputs)


class Answer(msgspec.Struct):
    """What became of the run: `step`: check or flows, the last that began; `error`, `fix` and `kind`: of one that
    failed; `flow`: the one that failed last, which Spark may have started again."""

    step: str = "check"
    graph: Graph = Graph()
    error: str | None = None
    fix: str | None = None
    kind: str | None = None
    flow: str | None = None


def same_dataset(one: str, other: str) -> bool:
    """Whether two names mean one dataset: one of them may have a catalog and a database before it."""
    ones, others = (name.replace("`", "").casefold().split(".") for name in (one, other))
    length = min(len(ones), len(others))
    return ones[-length:] == others[-length:]


def reads_of(relation: Any) -> Iterator[tuple[Any, bool]]:
    """The reads of a plan of Spark Connect, each with whether it streams: messages `Read` at any depth."""
    pending = [relation]
    while pending:
        message = pending.pop()
        if message.DESCRIPTOR.name == "Read":
            yield message, bool(message.is_streaming)
            continue
        for field, value in message.ListFields():
            if field.message_type is not None and not field.message_type.GetOptions().map_entry:
                pending += value if field.is_repeated else [value]


def inputs_in(relation: Any, latest: Callable[[str, StoreAccess], int]) -> tuple[tuple[Input, ...], tuple[str, ...]]:
    """What a flow's plan reads from outside, and the datasets that it reads by name.

    `latest`: the latest version of the lakeview table at an address, which is opened with these storage options. A
    batch read of one without a version is pinned at it, in the plan: what the run reads is then known.
    """
    inputs, datasets = [], []
    for message, streams in reads_of(relation):
        if message.HasField("named_table"):
            datasets.append(message.named_table.unparsed_identifier)
            continue
        source, version, starting = message.data_source, None, None
        if source.format == FORMAT:
            _make_absolute(source)
            options = {name.lower(): value for name, value in source.options.items()}
            newest = latest(address_of(source), access_of(options))
            text = options.get("startingversion", "")
            if not streams:
                version = _pin_version(source, options, newest)
            elif text.isdecimal():
                starting = int(text)
        inputs.append(Input(address_of(source) or source.format, source.format, streams, version, starting))
    return tuple(inputs), tuple(datasets)


def address_of(source: Any) -> str:
    """What a message `DataSource` reads: its paths, or the option that names one."""
    paths = [value for name, value in source.options.items() if name.lower() == "path"]
    return ", ".join([*source.paths, *paths])


def absolute(address: str) -> str:
    """A path that a file of the pipeline gives, from the project's folder, which is the working directory while the
    files are loaded: servers and tasks have others. A share's address and a URL stay."""
    return address if "#" in address or is_absolute(address) or not address else normalise(address)


def _make_absolute(source: Any) -> None:
    source.paths[:] = [absolute(path) for path in source.paths]
    for name in list(source.options):
        if name.lower() == "path":
            source.options[name] = absolute(source.options[name])


def _pin_version(source: Any, options: Mapping[str, str], latest: int) -> int | None:
    """The version that a batch read has, after pinning it where it has none; None where options decide otherwise."""
    for name in ("versionasof", "version"):
        if options.get(name, "").isdecimal():
            return int(options[name])
    others = {"timestamp", "timestampasof", "readchangefeed", "differencefrom"}
    if others & options.keys():
        return None
    source.options["versionAsOf"] = str(latest)
    return latest
