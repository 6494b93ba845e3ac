"""Columns by any of their names, and conditions on rows in the language of `shardscape top --where`."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from . import _shardscape, results
from ._commands import PathLike


def meant(name: str, units: Mapping[str, str]) -> str:
    """The column, of those with these units, that a name means: its own, the one without its unit (step_time, memory),
    that of an axis of plans (tp), or a path of the study. The name itself where there is none."""
    if name in units:
        return name
    return _shardscape.column_meant(name, [(column, unit, [], "") for column, unit in units.items()])


def units_of(frame: pd.DataFrame) -> dict[str, str]:
    """The unit of every column of a frame, "" where it is not known."""
    known = frame.attrs.get("units", {})
    return {column: str(known.get(column, "")) for column in frame.columns if isinstance(column, str)}


def rows_where(frame: pd.DataFrame, text: str) -> pd.DataFrame:
    """The rows for which an expression holds: of pandas, or as of `top --where`. InputError where it is neither."""
    try:
        return frame.query(text)
    except Exception:  # pandas has an exception for every kind of text
        columns, values = [], []
        better = frame.attrs.get("better", {})
        for name, unit in units_of(frame).items():
            column = frame[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                columns.append((name, unit, [str(one) for one in column.cat.categories], ""))
                values.append(column.cat.codes.to_numpy(float))
            elif pd.api.types.is_numeric_dtype(column.dtype):
                columns.append((name, unit, [], better.get(name, "")))
                values.append(column.to_numpy(float, na_value=float("nan")))
        return frame[_shardscape.rows_where(text, columns, values)]


def load(path: PathLike, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """All points of a result file as a DataFrame, ascending by point_id. columns: limits what is read, by any of the
    columns' names."""
    if columns is None:
        return results.load(path)
    units = results.units(path)
    wanted = [columns] if isinstance(columns, str) else columns
    return results.load(path, [meant(name, units) if isinstance(name, str) else name for name in wanted])


def best(path: PathLike, n: int = 1, by: str | None = None) -> pd.DataFrame:
    """The n best feasible points of a result file by a column, or by the first objective; of equal points the first."""
    return results.best(path, n, meant(by, results.units(path)) if isinstance(by, str) else by)
