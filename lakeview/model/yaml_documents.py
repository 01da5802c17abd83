"""YAML text to a document in which no key hides another, and errors to one line that names the place."""

from collections import Counter
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Refuses a mapping with a key twice, of which YAML's loaders silently take the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name, count in Counter(names).items():
            if count > 1 and name != "<<":
                raise yaml.composer.ComposerError(
                    problem=f"{name} is there twice, in what begins at line {node.start_mark.line + 1}"
                )
        return node


def load_yaml(text: str) -> Any:
    """The document in a text. Raises yaml.YAMLError, and RecursionError where it refers to itself or is nested too
    deep."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def yaml_problem(error: yaml.YAMLError) -> str:
    """What is wrong with a text, in one line, with the number of the text's line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark
        return error.problem if mark is None else f"{error.problem}, line {mark.line + 1}"
    return str(error).splitlines()[0]
