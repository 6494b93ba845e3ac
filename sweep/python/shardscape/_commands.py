"""Runs the program's commands in this process: their words, their notes, their progress."""
from __future__ import annotations

import contextlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
import pandas as pd

from . import _shardscape
from .errors import InputError

PathLike = Union[str, "os.PathLike[str]"]
Progress = Union[bool, Callable[[dict[str, Any]], None]]

INTERRUPTED, INACCURATE, BAD_INPUT = 130, 3, 2


class ShardscapeWarning(UserWarning):
    """What a result rests on beyond its inputs, and what a command did not do."""


def warn_of(lines: Sequence[str]) -> None:
    """Warns the caller of the package's caller."""
    for line in lines:
        warnings.warn(line, ShardscapeWarning, stacklevel=4)


def encoded(path: PathLike) -> bytes:
    """The bytes of a path, also of one that is no UTF-8."""
    return os.fsencode(path)


def words_of(options: Mapping[str, object]) -> list[str]:
    """The words of options: `--name VALUE`; None and False are left out, of True the name alone, of a list all of
    them."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        if value is True:
            words.append(option)
            continue
        many = value if isinstance(value, (list, tuple)) else [value]
        for one in many:
            text = os.fspath(one) if isinstance(one, os.PathLike) else str(one)
            words += [option, text] if len(option) == 2 else [f"{option}={text}"]
    return words


def run(
    words: Sequence[str],
    study: _shardscape.Inputs | None = None,
    presets: Sequence[bytes] = (),
    tell: Callable[[str], None] | None = None,
    places: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Runs a command; returns its exit code, its output and its notes. Its warnings become Python's.

    `places`: texts of messages and what they read instead, as names of temporary files.
    """
    try:
        code, out, notes = _shardscape.run([os.fsencode(word) for word in words], study, presets, tell)
    except InputError as error:
        names = {**(places or {}), "--force replaces": "force=True replaces"}
        raise InputError(_renamed(str(error), names), [_renamed(p, names) for p in error.problems]) from None
    left = []
    for line in _renamed(notes, places or {}).splitlines():
        if line.startswith("warning: "):
            warnings.warn(line[len("warning: "):], ShardscapeWarning, stacklevel=3)
        else:
            left.append(line)
    if code == INTERRUPTED:
        raise KeyboardInterrupt("\n".join(left))
    return code, out, "\n".join(left).strip()


def _renamed(text: str, places: Mapping[str, str]) -> str:
    for place, name in places.items():
        text = text.replace(place, name)
    return text


@contextlib.contextmanager
def telling(progress: Progress, what: str, unit: str) -> Iterator[Callable[[str], None] | None]:
    """What gets the lines of progress: a bar of tqdm, the caller's own function, or nothing."""
    if not isinstance(progress, bool):
        function = progress
        if not callable(function):
            raise InputError(f"progress: True, False or a function is expected, not {type(function).__name__}")
        yield lambda line: function(json.loads(line))
        return
    if not progress:
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:  # a bar is no need
        yield None
        return
    with tqdm(desc=what, unit=unit, leave=False) as bar:
        yield lambda line: _show(bar, json.loads(line))


def _show(bar: Any, event: dict[str, Any]) -> None:
    done = event.get("points", event.get("visited", event.get("simulated")))
    if event.get("total"):
        bar.total = event["total"]
    best = event.get("best")
    if isinstance(best, dict) and "plan" in best:
        bar.set_postfix_str(f"best {best['plan']}", refresh=False)
    if done is not None:
        bar.n = done
    bar.refresh()


@contextlib.contextmanager
def table_file(table: pd.DataFrame | PathLike, name: str = "table.csv") -> Iterator[tuple[str, dict[str, str]]]:
    """A file with the table, and what messages should call it. A path is taken as it is."""
    if not isinstance(table, pd.DataFrame):
        yield os.fspath(table), {}
        return
    with tempfile.TemporaryDirectory(prefix="shardscape-") as folder:
        path = os.path.join(folder, name)
        table.apply(lambda column: column.map(_cell)).to_csv(path, index=False)
        yield path, {folder + os.sep: ""}


def _cell(value: Any) -> Any:
    """A cell as tables write it: whole numbers without a point (a blank makes pandas turn a column into floats), truth
    values as 0 or 1, nothing where nothing is known."""
    if value is None or value is pd.NA:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if not isinstance(value, (float, np.floating)):
        return value
    number = float(value)
    if np.isnan(number):
        return ""
    return int(number) if abs(number) < 2**53 and number == int(number) else value
