"""The result of one simulated plan."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _shardscape
from ._commands import PathLike, run, words_of

if TYPE_CHECKING:
    import pandas

    from ._result_columns import ResultColumns
else:
    ResultColumns = object

__all__ = ["Result"]


class Result(ResultColumns):
    """One simulated plan. The columns of the result table (results_schema/SCHEMA.md) are its attributes, in SI units:
    `step_time_s`, `mfu`, `memory_peak_bytes`, ... Of a plan that is not "ok" what was not computed is NaN or None.
    """

    __slots__ = ("_documents", "_faults", "_label", "_mode", "_native")

    def __init__(self, native: _shardscape.Result, label: str, mode: str | None, faults: Sequence[str]) -> None:
        self._native, self._label, self._mode, self._faults = native, label, mode, faults
        self._documents: dict[bool, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._native.get(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._native.names()]

    def __repr__(self) -> str:
        row = self.row()
        whole = "step_time_s" if "step_time_s" in row else "e2e_s"
        return f"<shardscape.Result {self.plan}: {row['status']}, {whole} {row[whole]:.6g}>"

    @property
    def plan(self) -> str:
        """The plan as text, with what followed from what was given: "tp=8,pp=4,dp=2"."""
        return self._native.plan

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column (UDUNITS; "1" where there is none)."""
        return self._native.units()

    def row(self) -> dict[str, Any]:
        """All columns, as a row of a sweep has them; pandas.DataFrame([r.row() for r in ...]) makes a table."""
        return self._native.row()

    def to_dict(self) -> dict[str, Any]:
        """What `shardscape simulate --json` says of the plan: times, memory per stage, breakdown, nearest plans that
        fit. Of a plan that does not fit in memory times are as if it did."""
        return self._document()

    def explain(self) -> dict[str, Any]:
        """The same with `operators`, a list of dicts: phase, operator, shape, count, time_s, share, bound; of simulated
        loads where the time of a request goes."""
        return self._document(explain=True)

    def worth(self) -> pandas.DataFrame:
        """What one more unit of each number of device, fabric and stack is worth to this plan: a table with the columns
        `key` (as `set` takes it), `unit_text` ("1 GB/s more", "1 us less"), `per_unit_s` (seconds by which one more
        unit changes the time of a step or request), `more_s` and `less_s` (the time with 5 % more and less; NaN where
        the number may not be so). Each number costs two simulations. InputError where faults were given."""
        import pandas

        document = json.loads(self._run(json=True, worth=True))
        columns = ["key", "unit_text", "per_unit_s", "more_s", "less_s"]
        return pandas.DataFrame(document["worth"], columns=columns).astype({name: float for name in columns[2:]})

    def report(self, explain: bool = False) -> str:
        """The same as a text for people."""
        return self._run(explain=explain)

    def timeline(self, path: PathLike | None = None) -> Any:
        """The pipeline of a training step, or a simulated load, as a Chrome trace (ui.perfetto.dev): a dict with
        `traceEvents`, times in microseconds. path: also writes the file (JSON), which must not exist."""
        with tempfile.TemporaryDirectory(prefix="shardscape-") as folder:
            file = os.path.join(folder, "timeline.json") if path is None else os.fspath(path)
            self._run(json=True, timeline=file)
            with open(file, encoding="utf-8") as text:
                return json.load(text)

    def _document(self, explain: bool = False) -> dict[str, Any]:
        if explain not in self._documents:  # what was computed stays; every caller has a dict of its own
            self._documents[explain] = self._run(json=True, explain=explain)
        document: dict[str, Any] = json.loads(self._documents[explain])
        return document

    def _run(self, **options: object) -> str:
        point = self._native.text or None
        words = words_of({"point": point, "mode": self._mode, "fault": list(self._faults), **options})
        return run(["simulate", self._label, *words], self._native.study)[1]
