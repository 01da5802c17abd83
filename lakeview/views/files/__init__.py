"""How the live files of a version lie: sizes, manifests, and the layout inside one file."""

from lakeview.views.files import layout, manifests, sizes

__all__ = ["layout", "manifests", "sizes"]
