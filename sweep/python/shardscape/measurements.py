"""Predictions against measurements, and constants fitted to them."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from . import _shardscape
from ._commands import BAD_INPUT, PathLike, encoded, run, table_file, words_of
from .errors import InputError
from .presets import Preset, plain

__all__ = ["Calibration", "Validation", "calibrate", "validate"]


@dataclass(frozen=True)
class Validation:
    """Predictions against measurements: `report` is what `shardscape validate --json` says (errors are shares), `rows`
    has a row for each prediction."""

    report: dict[str, Any]
    rows: pd.DataFrame


@dataclass(frozen=True)
class Calibration:
    """A fit: `report` is what `shardscape calibrate --json` says, `stack` and `device` are the fitted profiles (None
    where not fitted), which a study takes in place of names."""

    report: dict[str, Any]
    stack: Preset | None
    device: Preset | None
    notes: str


def validate(
    measurements: pd.DataFrame | PathLike,
    *,
    presets: Sequence[PathLike] = (),
    hold_out: str | None = None,
    by: Sequence[str] | None = None,
    device: str | None = None,
    stack: str | None = None,
) -> Validation:
    """Holds predictions against measurements.

    measurements: a table of plans, kernels or collectives (columns: `shardscape help tables`), or a file of one;
    row i of a frame is line i + 2 in messages, and without a column `id` rows have their numbers. hold_out: "N/M", the
    share of rows that a fit does not see. by: errors by group, such as ["model,gpus"]. device, stack: of rows that name
    none. InputError where rows are wrong.
    """
    measurements = _completed(measurements)
    options = {"hold_out": hold_out, "by": list(by) if by is not None else None, "device": device, "stack": stack}
    with table_file(measurements) as (file, places), tempfile.TemporaryDirectory(prefix="shardscape-") as folder:
        path = os.path.join(folder, "predictions.csv")
        words = [*_command("validate", file), *words_of({**options, "predictions": path, "json": True})]
        report = json.loads(_said(run(words, None, _bytes(presets), None, places)))
        return Validation(report, pd.read_csv(path, float_precision="round_trip"))


def calibrate(
    measurements: pd.DataFrame | PathLike,
    *,
    stack: str | Preset | None = None,
    device: str | Preset | None = None,
    presets: Sequence[PathLike] = (),
    only: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    start: Mapping[str, str] | None = None,
    where: str | None = None,
    rows_of: Sequence[str] | None = None,
    all: bool = False,
    hold_out: str | None = None,
    folds: int | None = None,
    folds_by: str | None = None,
) -> Calibration:
    """Fits constants of a stack, and of a device where one is given, to measurements (sweep/calibrate/README.md).

    only, keep: constants to fit, or to leave alone; start: where they start; where, rows_of, all: which rows count.
    Ctrl-C ends the fit with KeyboardInterrupt.
    """
    measurements = _completed(measurements)
    names = {"stack": stack, "device": device}
    options: dict[str, object] = {
        **{name: plain(preset) for name, preset in names.items()}, "only": _joined(only), "keep": _joined(keep),
        "start": [f"{name}={value}" for name, value in (start or {}).items()], "where": where,
        "rows_of": list(rows_of or []), "all": all, "hold_out": hold_out, "folds": folds, "folds_by": folds_by,
        "json": True, "quiet": True,
    }
    with table_file(measurements) as (file, places), tempfile.TemporaryDirectory(prefix="shardscape-") as folder:
        path = os.path.join(folder, "fitted.yaml")
        words = [*_command("calibrate", file), *words_of({**options, "output": path})]
        _, out, notes = run(words, None, _bytes(presets), None, places)
        both = stack is not None and device is not None
        fitted: dict[str, Preset | None] = {"stack": None, "device": None}
        for kind, preset in names.items():
            if preset is None:
                continue
            name = preset.name if isinstance(preset, Preset) else os.path.basename(preset).removesuffix(".yaml")
            written = os.path.join(folder, "fitted.device.yaml") if both and kind == "device" else path
            keys = _shardscape.parse_yaml(os.fsdecode(_shardscape.read_text(encoded(written))), f"{name}.fitted")
            fitted[kind] = Preset(kind, f"{name}-fitted", keys)
        return Calibration(json.loads(out), fitted["stack"], fitted["device"], notes)


def _completed(table: pd.DataFrame | PathLike) -> pd.DataFrame | PathLike:
    """A frame of plans with names of rows."""
    named = {"model", "cluster", "stack"}
    if not isinstance(table, pd.DataFrame) or not named <= {str(name) for name in table.columns}:
        return table
    return table if "id" in table else table.assign(id=[f"row {i}" for i in range(len(table))])


def _command(command: str, file: str) -> list[str]:
    return [command, os.path.join(".", file) if file.startswith("-") else file]


def _bytes(presets: Sequence[PathLike]) -> list[bytes]:
    return [encoded(folder) for folder in presets]


def _joined(names: Sequence[str] | None) -> str | None:
    return None if names is None else ",".join([names] if isinstance(names, str) else names)


def _said(ran: tuple[int, str, str]) -> str:
    code, out, notes = ran
    if code == BAD_INPUT:
        problems = [line for line in notes.splitlines() if not line.startswith("shardscape: ")]
        raise InputError("\n".join(problems), problems)
    return out
