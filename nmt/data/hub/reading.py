"""Two columns of a dataset as pairs of lines, a batch of rows at a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt.data.corpus import Pair
from nmt.data.hub.opening import ROWS
from nmt.errors import ConfigError, UserError


class Column(NamedTuple):
    """A column, or with `key` a part of it: translation, en."""

    name: str
    key: str | None


def column_in(dataset: Any, wanted: str, where: str) -> Column:
    """A column of that name, or a part of the translation. ConfigError where there is none, or where it is no text."""
    import pyarrow as pa

    schema = dataset.data.schema
    types = {Column(field.name, None): field.type for field in schema if not pa.types.is_struct(field.type)}
    for field in schema:
        if pa.types.is_struct(field.type):
            types |= {Column(field.name, part.name): part.type for part in field.type}
    found = next((column for column in types if (column.key or column.name) == wanted), None)
    if found is None:
        listed = ", ".join(f"{column.key} (in {column.name})" if column.key else column.name for column in types)
        raise ConfigError(f"{where} has no column {wanted}; there are: {listed}; see data.source_column, target_column")
    if not _is_text(types[found]):
        raise ConfigError(f"column {wanted} of {where} is not text but {types[found]}; name another data.source_column")
    return found


def read_pairs(dataset: Any, source: Column, target: Column, where: str) -> Iterator[Pair]:
    """All rows. UserError where a cell is not UTF-8."""
    names = list(dict.fromkeys((source.name, target.name)))
    count = 0
    for table in dataset.select_columns(names).with_format("arrow").iter(ROWS):
        try:
            sources, targets = _lines(table, source), _lines(table, target)
        except UnicodeDecodeError:
            rows = f"{count + 1:,} to {count + table.num_rows:,}"
            raise UserError(f"{where}: a cell in rows {rows} is not UTF-8; mend the file it is from") from None
        count += table.num_rows
        yield from map(Pair, sources, targets)


def _lines(table: Any, column: Column) -> list[str]:
    from pyarrow.compute import struct_field

    cells = table.column(column.name)
    texts = (struct_field(cells, column.key) if column.key else cells).to_pylist()
    return [_one_line(text) for text in texts]


def _one_line(text: str | None) -> str:
    if text is None:
        return ""
    if "\n" in text or "\r" in text:
        return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
    return text


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")
