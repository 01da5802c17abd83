"""Reader features that are still to come: a table that needs one of them is refused by name, and fails for now.

The list only shrinks. A table that needs a listed feature and reads right all the same fails the run: strike the
feature out. So does a feature that no golden table needs.
"""

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {}
"""Reader feature, as the protocol names it, to the reason why it is not implemented yet."""
