"""Plots with matplotlib. Every function draws into `axes`, or into a figure of its own, and returns the axes:
shardscape.plots.front(points).figure.savefig("front.png")."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import _shardscape, results
from .errors import InputError
from .result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["breakdown", "cdf", "front", "schedule", "ttft_throughput"]

Rows = Union[pd.DataFrame, Result, Iterable[Result]]


def breakdown(rows: Rows, labels: Sequence[str] | None = None, axes: Axes | None = None) -> Axes:
    """Where the time of each row goes: stacked bars, s. rows: of `top`, or results of `simulate`."""
    frame = _frame(rows)
    axes = axes or _axes()
    names = labels or [str(frame["point_id"].iat[i]) if "point_id" in frame else str(i) for i in range(len(frame))]
    if len(names) != len(frame):
        raise InputError(f"breakdown: labels: {len(names)} for {len(frame)} rows")
    left = np.zeros(len(frame))
    if not any(column in frame for column, _ in _shardscape.breakdown_columns()):
        _columns("breakdown", frame, _shardscape.breakdown_columns()[0][0])
    for column, label in _shardscape.breakdown_columns():
        values = frame[column].fillna(0).to_numpy(float) if column in frame else np.zeros(len(frame))
        if values.any():
            axes.barh(range(len(frame)), values, left=left, label=label)
            left += np.maximum(values, 0)
    axes.set_yticks(range(len(frame)), names)
    axes.invert_yaxis()
    axes.set_xlabel("time (s)")
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))  # beside the bars, not over them
    return axes


def front(points: pd.DataFrame, x: str = "memory_peak_bytes", y: str | None = None, axes: Axes | None = None) -> Axes:
    """The feasible points by two columns, bytes in GiB, and their Pareto front. y: None: the first objective that is
    not x. Of many points those are drawn that the picture can tell apart."""
    axes = axes or _axes()
    better = points.attrs.get("better", {})
    objectives = [name for name in points.attrs.get("objectives", "").split() if name != x]
    y = y or (objectives[0] if objectives else "step_time_s")
    if x == y:
        raise InputError(f"front: x and y are both '{x}'; give two columns")
    chosen = _columns("front", points, x, y, "status")
    ok = chosen.loc[chosen["status"] == "ok", [x, y]].dropna()
    for name in (x, y):
        if not pd.api.types.is_numeric_dtype(ok[name]):
            raise InputError(f"front: points: column '{name}' has no numbers")
    count = len(ok)
    scales = [_GIB if _unit(points, name) == "byte" else 1.0 for name in (x, y)]
    ok = ok / scales
    cloud = _told_apart(ok.to_numpy(float))
    axes.scatter(cloud[:, 0], cloud[:, 1], s=6, alpha=0.4, label=f"{count:,} feasible points")
    signs = [-1.0 if better.get(name) == "larger" else 1.0 for name in (x, y)]
    costs = (ok.to_numpy(float) * signs)[np.lexsort((ok[y] * signs[1], ok[x] * signs[0]))]
    least = np.minimum.accumulate(costs[:, 1]) if len(costs) else np.empty(0)
    on_front = costs[np.r_[True, costs[1:, 1] < least[:-1]]] if len(costs) else costs
    axes.plot(on_front[:, 0] * signs[0], on_front[:, 1] * signs[1], "o-", color="C3", ms=4, label="Pareto front")
    for name, label in ((x, axes.set_xlabel), (y, axes.set_ylabel)):
        label(_title(points, name))
    axes.legend(fontsize="small")
    return axes


def schedule(result: Result, axes: Axes | None = None) -> Axes:
    """The pipeline of a training step: what each stage does when, s."""
    axes = axes or _axes(width=10)
    trace = result.timeline()["traceEvents"]
    named = {event["pid"] for event in trace if event["name"] == "process_name" and event["args"]["name"] == "pipeline"}
    lanes = [event for event in trace if event["name"] == "thread_name" and event["pid"] in named]
    stages = {event["tid"]: event["args"]["name"] for event in lanes}
    if not stages:
        raise InputError("schedule: result: has no pipeline; it is of a training step that was simulated")
    bars: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for event in trace:
        if event.get("ph") == "X" and event["pid"] in named:
            kind = str(event["name"]).split()[0]
            bars.setdefault((event["tid"], kind), []).append((event["ts"] / 1e6, event["dur"] / 1e6))
    colours = {kind: f"C{i % 10}" for i, kind in enumerate(dict.fromkeys(kind for _, kind in bars))}
    for (stage, kind), spans in bars.items():
        axes.broken_barh(spans, (stage - 0.4, 0.8), color=colours[kind], edgecolor="white", linewidth=0.3)
    axes.set_yticks(list(stages), list(stages.values()))
    axes.invert_yaxis()
    axes.set_xlabel("time (s)")
    for kind, colour in colours.items():
        axes.barh(0, 0, color=colour, label=kind)
    axes.legend(fontsize="small", loc="upper right")
    return axes


def cdf(values: Iterable[float], label: str = "", axes: Axes | None = None) -> Axes:
    """The cumulative distribution of numbers, such as the slowdowns of `fault_samples`; missing ones are left out."""
    axes = axes or _axes()
    try:
        numbers = np.sort(pd.to_numeric(pd.Series(list(values)), errors="raise").dropna().to_numpy(float))
    except (TypeError, ValueError) as error:
        raise InputError(f"cdf: values: {error}") from None
    if len(numbers) == 0:
        raise InputError("cdf: values: there are no numbers")
    axes.step(numbers, np.arange(1, len(numbers) + 1) / len(numbers), where="post", label=label or None)
    axes.set_ylabel("share at most that")
    axes.set_ylim(0, 1.02)
    if label:
        axes.legend(fontsize="small")
    return axes


def ttft_throughput(points: pd.DataFrame, ttft: str = "ttft_s", axes: Axes | None = None) -> Axes:
    """Servers: time to first token against tokens per second and GPU, with the front. ttft: "ttft_p95_s", for
    instance."""
    rate = "output_tokens_per_s_per_gpu" if "output_tokens_per_s_per_gpu" in points else "tokens_per_s_per_gpu"
    _columns("ttft_throughput", points, ttft, rate, "status")
    axes = front(points, x=ttft, y=rate, axes=axes)
    axes.set_xscale("log")
    return axes


def _axes(width: float = 7) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, 4), layout="constrained")[1]


def _frame(rows: Rows) -> pd.DataFrame:
    if isinstance(rows, pd.DataFrame):
        return rows
    many = [rows] if isinstance(rows, Result) else list(rows)
    if not all(isinstance(one, Result) for one in many):
        raise InputError("breakdown: rows: a frame or results of simulate are expected")
    return pd.DataFrame([one.row() for one in many])


def _columns(function: str, points: pd.DataFrame, *names: str) -> pd.DataFrame:
    """These columns, each once; or what is missing, what may be meant, and where such a column comes from."""
    for name in names:
        if name in points:
            continue
        kind = {"ttft": "of inference ", "itl": "of inference ", "step": "of training "}.get(name.split("_")[0], "")
        raise InputError(
            f"{function}: points: there is no column '{name}'{results.hint(name, points.columns)}. Study.sweep, top and "
            f"load give tables {kind}that have it, unless store.columns of the study leaves it out")
    return points[list(dict.fromkeys(names))]


_GIB = 2.0**30


def _told_apart(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of many points, one in each cell of a grid finer than a picture, and one in each of a grid of logarithms where
    all are above 0, as the axes may be either: millions of marks would take minutes to draw over each other."""
    most, cells = 20_000, 1_000
    if len(points) <= most:
        return points
    kept = np.zeros(len(points), bool)
    for places in (points, np.log(points)) if (points > 0).all() else (points,):
        low, extent = places.min(axis=0), np.ptp(places, axis=0)
        grid = ((places - low) / np.where(extent > 0, extent, 1) * cells).astype(np.int64)
        kept[np.unique(grid[:, 0] * (cells + 1) + grid[:, 1], return_index=True)[1]] = True
    drawn: NDArray[np.float64] = points[kept]
    return drawn


def _unit(points: pd.DataFrame, name: str) -> Any:
    return points.attrs.get("units", {}).get(name, "1")


def _title(points: pd.DataFrame, name: str) -> str:
    unit = _unit(points, name)
    return name if unit == "1" else f"{name} ({'GiB' if unit == 'byte' else unit})"
