"""The best rows of results, by a column or by any function of the columns."""
from __future__ import annotations

from collections.abc import Callable
from typing import Union

import pandas as pd

from . import results
from ._columns import meant, rows_where, units_of
from ._commands import PathLike
from .errors import InputError

__all__ = ["top"]

Objective = Union[str, Callable[[pd.DataFrame], "pd.Series[float]"], None]


def _like(columns: pd.Index[str], name: str) -> list[str]:
    """The columns that a name may mean, the likeliest first: by its beginning, or by the initials of its words ("tp")."""
    like = [column for column in columns if name and column.startswith(name + "_")]
    return like[:1] + [column for column in columns if "".join(word[:1] for word in column.split("_")) == name]


def top(
    source: pd.DataFrame | PathLike,
    n: int = 10,
    by: Objective = None,
    *,
    larger: bool | None = None,
    where: str | Callable[[pd.DataFrame], "pd.Series[bool]"] | None = None,
) -> pd.DataFrame:
    """The n best feasible rows, best first; of equal ones the smallest point_id first.

    source: a frame of `load`, `sweep` or `search`, or a result file. by: a column, with or without its unit (None: the
    study's first objective), or a function of the frame that gives a number for each row, whose values become the
    column "objective": top(points, 5, by=lambda p: p.step_time_s * p.memory_peak_bytes). larger: whether more is
    better; None: as the column says, and less for functions. where: an expression of pandas ("zero_stage >= 1") or one of `shardscape top --where` ("tp <= 8 and
    step_time < 17 s"), or a function that says which rows.
    """
    frame = source if isinstance(source, pd.DataFrame) else results.load(source)
    if "status" not in frame or "point_id" not in frame:
        raise InputError("top: source: a frame with the columns point_id and status is expected")
    chosen = frame[frame["status"] == "ok"]
    if where is not None:
        chosen = rows_where(chosen, where) if isinstance(where, str) else chosen[where(chosen)]
    better = frame.attrs.get("better", {})
    if by is None:
        objectives = frame.attrs.get("objectives", "").split()
        if not objectives:
            raise InputError("top: by: the frame names no objective; say a column or a function")
        by = objectives[0]
    if callable(by):
        chosen, name = chosen.assign(objective=pd.to_numeric(by(chosen))), "objective"
    else:
        name = meant(by, units_of(frame)) if isinstance(by, str) else by
        if name not in chosen:
            hint = results.hint(name, chosen.columns, _like(chosen.columns, name))
            raise InputError(f"top: by: there is no column '{name}'{hint}")
        if larger is None and name not in better:
            raise InputError(f"top: by: '{name}' has no better direction; say larger=True or larger=False")
    down = larger if larger is not None else better.get(name) == "larger"
    chosen = chosen[chosen[name].notna()]
    ranked = chosen.sort_values([name, "point_id"], ascending=[not down, True], kind="stable")
    return ranked.head(n).reset_index(drop=True)
