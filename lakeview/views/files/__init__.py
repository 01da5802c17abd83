"""How the live files of a version lie: sizes, names, manifests, and the layout inside one file."""

from lakeview.views.files import layout, manifests, names, sizes

__all__ = ["layout", "manifests", "names", "sizes"]
