"""Studies: what is to be explored, and everything that can be asked about it."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from . import _shardscape, results
from ._columns import load
from ._commands import PathLike, Progress, encoded, run, telling, warn_of, words_of
from .errors import InputError
from .measurements import Calibration, Validation, calibrate, validate
from .presets import Preset, plain
from .result import Result

__all__ = ["Study"]


class Study:
    """A study: a model, a cluster, a workload and a space of plans, read and checked.

    Made by `load` or `from_dict`. Methods that evaluate release the interpreter's lock; any number of threads may use
    one study, but of the methods that run for long (`check`, `sweep`, `search`, `capacity`, `validate`, `calibrate`,
    and `to_dict`, `explain`, `timeline` of results) one runs at a time in a process. Ctrl-C ends them in an orderly
    way.

    Raises InputError, with all that is wrong and where, for bad input; RunError where disk or memory fail.
    """

    def __init__(self, text: bytes, file: PathLike, overrides: Sequence[str], presets: Sequence[PathLike]) -> None:
        self._text, self._file, self._presets = text, os.fspath(file), [os.fspath(folder) for folder in presets]
        #: The word for the study in a command line; its text is given beside.
        self._label = os.path.join(".", self._file) if self._file.startswith("-") else self._file
        self._read(list(overrides))

    def _read(self, overrides: list[str]) -> None:
        presets = [encoded(folder) for folder in self._presets]
        self._inputs = _shardscape.read_study(self._text, encoded(self._file), overrides, presets)
        warn_of(self._inputs.assumptions[: self._inputs.warned_of])

    @classmethod
    def load(
        cls, path: PathLike, set: Mapping[str, object] | None = None, presets: Sequence[PathLike] = ()
    ) -> Study:
        """Reads a study file (YAML).

        set: settings by their dotted keys, as of `Study.set`. presets: folders with models/ and hw_presets/, searched
        before the built-in ones. InputError names file, line, column and key of everything that is wrong.
        """
        return cls(_shardscape.read_text(encoded(path)), path, _overrides(set or {}), presets)

    @classmethod
    def ready(cls, name: str) -> Study:
        """One of the studies that come with the program (sweep/studies), by its name."""
        folder = _shardscape.ready_studies()
        names = sorted(file[:-5] for file in os.listdir(folder) if file.endswith(".yaml"))
        if name not in names:
            raise InputError(f"ready: no study '{name}'; studies: {', '.join(names)}")
        return cls.load(os.path.join(folder, name + ".yaml"))

    @classmethod
    def from_dict(cls, study: Mapping[str, object], presets: Sequence[PathLike] = ()) -> Study:
        """A study of the keys that a study file has (sweep/study/README.md), quantities as texts with units ("2 TB/s").

        Models, devices, clusters and stacks may be names, paths or `Preset` objects, also those made in Python.
        """
        if not isinstance(study, Mapping):
            raise InputError(f"study: a dict of the study's keys is expected, not {type(study).__name__}")
        text = json.dumps(plain(study), indent=1, ensure_ascii=False)
        return cls(text.encode(errors="surrogateescape"), "study", [], presets)

    def set(self, key: str, value: object) -> Study:
        """Changes a setting by its dotted key ("workload.global_batch", "hardware.device.hbm.bandwidth"), and returns
        the study itself: copy.copy(study).set(...) leaves it as it is. Where that is wrong, InputError says so and
        nothing has changed. Results that were made keep their study.
        """
        self._read([*self._inputs.overrides, *_overrides({key: value})])
        return self

    def __reduce__(self) -> tuple[type[Study], tuple[object, ...]]:
        return type(self), (self._text, self._file, self._inputs.overrides, self._presets)

    @property
    def title(self) -> str:
        return self._inputs.title

    @property
    def phase(self) -> str:
        """"training" or "inference"."""
        return self._inputs.phase

    @property
    def gpus(self) -> list[int]:
        """The numbers of GPUs, ascending."""
        return self._inputs.gpus

    @property
    def objectives(self) -> list[str]:
        """Names of the columns that are optimised; the first one ranks."""
        return self._inputs.objectives

    @property
    def assumptions(self) -> list[str]:
        """What the results rest on beyond the inputs."""
        return self._inputs.assumptions

    @property
    def resolved(self) -> Any:
        """The study with every default filled in, as values of Python; `from_dict` reads it back."""
        return _shardscape.parse_yaml(self._inputs.resolved_yaml, "study")

    def __repr__(self) -> str:
        return f"<shardscape.Study {self.title}: {self.phase} on {', '.join(map(str, self.gpus))} GPUs>"

    def check(self) -> dict[str, Any]:
        """Counts the points: `points` = `plans` x `settings` (less what cannot be on their GPUs), `tuples` of (tp, cp,
        pp, dp), and `text`, which says as well why points are rejected and how long a sweep takes. Writes nothing.
        """
        _, text, _ = run(["check", self._label], self._inputs)
        return {**self._inputs.counts(), "text": text}

    def simulate(
        self, *, mode: str | None = None, faults: Sequence[str] = (), **plan: int | float | bool | str | None
    ) -> Result:
        """Predicts one plan: simulate(tp=8, pp=4, zero=1).

        plan: any of tp, sp, cp, pp, dp, ep, etp, zero, recompute, mbs, schedule, vpp, order (of inference tp, cp, pp,
        dp, ep, etp, prefill_tp, ..., concurrency, request_rate); what is left out takes the study's first value, and
        the axis that fills, fills. mode: "hierarchical", "flattened" (every message; may take long, Ctrl-C ends it) or
        "checked". faults: as of `shardscape simulate --fault`, such as "0-1=0.5". Simulators are kept: further plans
        are cheap. A plan that cannot run is no error: its result has a `status` and a `reason`.
        """
        if mode is None and faults == ():
            return Result(self._inputs.simulate(None, (), plan), self._label, None, ())
        sick = [faults] if isinstance(faults, str) else list(faults)
        return Result(self._inputs.simulate(mode, sick, plan), self._label, mode, sick)

    def sweep(
        self,
        output: PathLike | None = None,
        *,
        threads: int | None = None,
        progress: Progress = True,
        columns: Sequence[str] | None = None,
        resume: bool = False,
        repair: bool = False,
        force: bool = False,
        limit: int | None = None,
        sample: int | None = None,
        sample_seed: int | None = None,
        shard: str | None = None,
    ) -> pd.DataFrame:
        """Evaluates every point: a DataFrame with a row for each, as `shardscape.load` gives it (units in `attrs`).

        output: the result file (OUT.h5); None: no file is kept. threads: None: all; results are the same for any
        number. progress: True: a bar of tqdm; or a function that gets a dict with `points`, `total`, `best`, ... a few
        times per second. columns: those of the frame. limit: the first points only; sample: so many, drawn by
        sample_seed; shard: "I/N". resume, repair, force: as of `shardscape sweep`. Ctrl-C seals what is done in
        OUT.h5.parts, for resume=True, and raises KeyboardInterrupt; a second one is not needed, and waits for the
        first.
        """
        with tempfile.TemporaryDirectory(prefix="shardscape-") as folder:
            path = os.path.join(folder, "sweep.h5") if output is None else os.fspath(output)
            options = {
                "output": path, "progress": "json", "threads": threads, "resume": resume, "repair": repair,
                "force": force, "limit": limit, "sample": sample, "sample_seed": sample_seed, "shard": shard,
            }
            with telling(progress, self.title, " points") as tell:
                try:
                    run(["sweep", self._label, *words_of(options)], self._inputs, tell=tell)
                except KeyboardInterrupt:
                    if output is None or not os.path.isdir(path + ".parts"):
                        raise
                    raise KeyboardInterrupt(f"{path}.parts holds what is done; resume=True goes on") from None
            return load(path, columns)

    def search(
        self,
        n: int | None = None,
        *,
        pareto: Sequence[str] | None = None,
        within: str | None = None,
        budget: str | None = None,
        mode: str | None = None,
        output: PathLike | None = None,
        force: bool = False,
        threads: int | None = None,
        progress: Progress = True,
    ) -> pd.DataFrame:
        """The best points without visiting all: a DataFrame of the n best (10), best first, or of the front over the
        columns `pareto`, with attrs["certificate"] (a text) and attrs["search"] (what became of the points).

        within: "2%": as good as that is enough. budget: "10s" of CPU, or "20000 points". mode: instead of the study's.
        output: keeps what was visited in a result file. Ctrl-C raises KeyboardInterrupt.
        """
        with tempfile.TemporaryDirectory(prefix="shardscape-") as folder:
            path = os.path.join(folder, "search.h5") if output is None else os.fspath(output)
            options = {
                "n": n, "pareto": None if pareto is None else ",".join(_list(pareto, "pareto")), "within": within,
                "budget": budget, "mode": mode, "output": path, "force": force, "threads": threads,
                "format": "json", "progress": "json",
            }
            with telling(progress, self.title, " points") as tell:
                _, out, notes = run(["search", self._label, *words_of(options)], self._inputs, tell=tell)
            if not os.path.exists(path):  # it was stopped before it visited any point
                empty = pd.DataFrame()
                empty.attrs["certificate"] = notes
                return empty
            frame = results.load(path)
            best = [row["point_id"] for row in json.loads(out)]
            attrs = {**frame.attrs, "certificate": notes, "search": _search_facts(path)}
            frame = frame.set_index("point_id", drop=False).loc[best].reset_index(drop=True)
            frame.attrs = attrs
            return frame

    def capacity(
        self,
        rates: Sequence[float | str] | float | str | None = None,
        *,
        budget: str | None = None,
        report: PathLike | None = None,
        force: bool = False,
        threads: int | None = None,
        progress: Progress = True,
    ) -> pd.DataFrame:
        """The fewest GPUs, and their plan, that keep the study's promises: a row for each rate of requests, with
        `gpus`, `plan`, its latencies (s) and `certificate`, a text; attrs["answer"] is all that `capacity --json` says.

        rates: requests per second (or "180 /min") instead of the study's. budget: CPU time, such as "30s".
        report: also writes a page (HTML).
        """
        many = [rates] if isinstance(rates, (int, float, str)) else rates
        options = {
            "rate": None if many is None else ",".join(str(rate) for rate in many), "budget": budget,
            "report": report, "force": force, "threads": threads, "json": True, "progress": "json",
        }
        with telling(progress, self.title, " plans") as tell:
            _, out, _ = run(["capacity", self._label, *words_of(options)], self._inputs, tell=tell)
        answer = json.loads(out)
        rows = []
        for one in answer["answers"]:
            row = {key: value for key, value in one.items() if not isinstance(value, (dict, list))}
            certificate = one.get("certificate")
            rows.append({**row, "certificate": certificate["text"] if isinstance(certificate, dict) else certificate})
        frame = pd.DataFrame(rows)
        frame.attrs["answer"] = answer
        return frame

    def validate(self, measurements: pd.DataFrame | PathLike, **options: Any) -> Validation:
        """Holds predictions against measurements, as `shardscape.validate`; columns that the table lacks are the
        study's: phase, model, cluster, stack, gpus, and settings of the workload that have one value."""
        return validate(self._completed(measurements), presets=self._presets, **options)

    def calibrate(self, measurements: pd.DataFrame | PathLike, **options: Any) -> Calibration:
        """Fits the constants of the study's stack (or of `stack`) to measurements, as `shardscape.calibrate`."""
        options.setdefault("stack", self._inputs.stack)
        return calibrate(self._completed(measurements), presets=self._presets, **options)

    def _completed(self, measurements: pd.DataFrame | PathLike) -> pd.DataFrame | PathLike:
        known = {"model", "cluster", "gpus", "tensor_parallel", "tp"}
        if not isinstance(measurements, pd.DataFrame) or not known & {str(name) for name in measurements.columns}:
            return measurements  # a file, or a table of kernels or collectives, which have no study
        inputs = self._inputs
        filled: dict[str, object] = {
            "phase": inputs.phase, "model": inputs.model, "cluster": inputs.cluster, "stack": inputs.stack,
            "gpus": inputs.gpus[0] if len(inputs.gpus) == 1 else None, **inputs.workload(),
        }
        filled = {name: value for name, value in filled.items() if name not in measurements and value is not None}
        return measurements.assign(**filled)


def _overrides(settings: Mapping[str, object]) -> list[str]:
    texts = []
    for key, value in settings.items():
        if not isinstance(key, str):
            raise InputError(f"set: a key is a text such as 'workload.global_batch', not {key!r}")
        texts.append(f"{key}={json.dumps(plain(value), ensure_ascii=False)}")
    return texts


def _list(names: Sequence[str] | str, what: str) -> list[str]:
    if isinstance(names, str):
        return [names]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what}: names of columns are expected")
    return list(names)


def _search_facts(path: PathLike) -> dict[str, Any]:
    facts = results.study(path)
    return {name[len("search_"):]: value for name, value in facts.items() if name.startswith("search_")}


