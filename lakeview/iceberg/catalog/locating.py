"""Where pyiceberg would have read a table's metadata: the file it asks to open, which is not opened.

A catalog of pyiceberg that keeps only locations (SQL, Glue, ...) reads the metadata file to make its table. That file
is for lakeview to read, below the allowed roots and with its own rules for moved places: so pyiceberg is given this in
place of its own access to files (its property py-io-impl).
"""

from typing import NoReturn

from pyiceberg.io import FileIO


class LocatedSignal(Exception):
    """The location that was asked for."""

    def __init__(self, location: str) -> None:
        super().__init__()
        self.location = location


class LocatingIO(FileIO):
    """Opens nothing: being asked for a file ends the question with LocatedSignal."""

    def new_input(self, location: str) -> NoReturn:
        """Raises LocatedSignal."""
        raise LocatedSignal(location)

    def new_output(self, location: str) -> NoReturn:
        """PermissionError: nothing is written."""
        raise PermissionError(location)

    def delete(self, location: object) -> NoReturn:
        """PermissionError: nothing is deleted."""
        raise PermissionError(str(location))
