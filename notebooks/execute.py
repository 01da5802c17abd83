"""Run the notebooks beside this file over a demo lake, and keep what they show: `python notebooks/execute.py [LAKE]`.

Pictures are kept as PNG, so that they show wherever the notebook is read; paths of the machine are taken out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
PICTURES = "import altair\naltair.renderers.enable('png', scale_factor=1.25)"
SECONDS = 300


def execute(notebook: Path, lake: Path) -> Any:
    """The notebook with its outputs, run in a folder where `demo-lake` is `lake`. Raises CellExecutionError."""
    document = nbformat.read(notebook, as_version=4)
    # how pictures are kept is no part of the notebook: a reader's own renderer draws them
    document.cells.insert(0, nbformat.v4.new_code_cell(PICTURES))
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(lake.absolute(), Path(folder) / "demo-lake", target_is_directory=True)
        resources = {"metadata": {"path": folder}}
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        client = NotebookClient(document, timeout=SECONDS, kernel_name="python3", resources=resources)
        client.execute(env=environment)
        places = [f"{Path(folder).resolve()}/", f"{folder}/", f"{lake.absolute().parent}/", f"{lake.resolve().parent}/"]
    del document.cells[0]
    for number, cell in enumerate(cell for cell in document.cells if cell.cell_type == "code"):
        cell.execution_count = number + 1
        cell.metadata.pop("execution", None)
        cell.outputs = [_without(output, places) for output in cell.outputs]
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = number + 1
    return document


def _without(value: Any, places: list[str]) -> Any:
    """An output without the machine's paths, at any depth."""
    if isinstance(value, dict):
        return type(value)({key: _without(part, places) for key, part in value.items()})
    if isinstance(value, list):
        return [_without(part, places) for part in value]
    if isinstance(value, str):
        for place in places:
            value = value.replace(place, "")
    return value


def main() -> None:
    """Execute every notebook here and write it back."""
    lake = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("LAKEVIEW_DEMO", "demo-lake"))
    for notebook in sorted(HERE.glob("*.ipynb")):
        nbformat.write(execute(notebook, lake), notebook)


if __name__ == "__main__":
    main()
