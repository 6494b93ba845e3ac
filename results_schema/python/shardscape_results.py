#!/usr/bin/env python3
"""Loads Shardscape results into pandas.

Every function takes the path of a finished file (OUT.h5) or of a sweep that is running or was interrupted (OUT.h5.parts, or OUT.h5 while only the
folder exists); the rows of a running sweep are those sealed so far.

    >>> import shardscape_results as sr
    >>> points = sr.load("out.h5")                        # one row per point, infeasible points included
    >>> ok = points[points.status == "ok"]                # codes are categoricals with their names
    >>> ok.groupby("recompute", observed=True).step_time_s.min()
    >>> ok[ok.recompute < "full"]                         # ordered where the axis is: none < selective < full
    >>> points.attrs["units"]["memory_peak_bytes"]        # also sr.units("out.h5")
    'byte'
    >>> points.attrs["selection_text"]                    # "" where the rows are all of the study's points
    'of 5,891,184 in the study, the first 1,000'
    >>> sr.best("out.h5", n=5)                            # by the study's first objective
    >>> sr.best("out.h5", n=5, by="mfu")                  # in the direction in which the column is better
    >>> print(sr.study("out.h5")["resolved_yaml"])
    >>> sr.links("out.h5").groupby("dimension", observed=True).size()
    >>> sr.summary("out.h5")["status"]
    >>> samples = sr.fault_samples("out.h5")              # studies with faults
    >>> samples.merge(sr.links("out.h5"), on="link_id").groupby("dimension", observed=True).slowdown.mean()

Everything that is read is held against its checksum in the file; where it differs ResultsError says which dataset is damaged. Bytes of a text that
are no UTF-8 become surrogates, as in names of files.

What was not computed is missing: NaN in floats, NA in integers (nullable Int64). Finished files follow the netCDF-4 conventions, so that
xarray reads their groups, too: xarray.open_dataset("out.h5", group="points", engine="h5netcdf").

As a program it prints the best rows, with the objectives and the columns in which the rows differ:

    python3 shardscape_results.py OUT.h5 [-n ROWS] [--by COLUMN]

Columns, units and codes are described in SCHEMA.md. Needs h5py and pandas.
"""
import argparse
import difflib
import os
import sys
import zlib

import h5py
import numpy as np
import pandas as pd

__all__ = ["ResultsError", "load", "units", "best", "study", "links", "summary", "fault_samples"]

SCHEMA_VERSION = 4
TOP_COUNT = 10


class ResultsError(Exception):
    """The path holds no Shardscape results, or a column that was asked for is not there."""


class MissingResults(ResultsError, FileNotFoundError):
    """Nothing lies at the path."""


def hint(name, columns, likely=()):
    """The end of a message about a name that no column has: which is meant, those of `likely` first, or which there are."""
    names = list(map(str, columns))
    near = [*likely, *difflib.get_close_matches(name, names, n=1)]
    return f" (did you mean '{near[0]}'?)" if near else f"; columns: {', '.join(names) or 'none'}"


def load(path, columns=None):
    """All points as a DataFrame, ascending by point_id. `columns` limits what is read."""
    with _Results(path) as results:
        return results.frame(columns)


def units(path):
    """The unit of every column (UDUNITS; "1" where there is none)."""
    with _Results(path) as results:
        return {name: _attribute(column, "units") for name, column in results.columns().items()}


def best(path, n=1, by=None):
    """The n best feasible points by a column (the first objective by default); of equal points the first."""
    with _Results(path) as results:
        by = by or results.first_objective()
        better = _attribute(results.column(by), "better")
        if better is None:
            raise ResultsError(f"{path}: column {by} has no better direction")
        frame = results.frame()
    frame = frame[(frame["status"] == "ok") & frame[by].notna()]
    frame = frame.sort_values([by, "point_id"], ascending=[better == "smaller", True], kind="stable")
    return frame.head(n).reset_index(drop=True)


def study(path):
    """Attributes of the run, the resolved study and the inputs: a dict with title, study_sha256, ..., resolved_yaml, sources."""
    with _Results(path) as results:
        info = {name: _attribute(results.head, name) for name in results.head.attrs}
        info["resolved_yaml"] = _text(results.head["study/resolved_yaml"])
        info["sources"] = {_attribute(text, "name"): _text(text) for text in results.head["study/sources"].values()}
        return info


def links(path):
    """The links of the study's fabric as a DataFrame."""
    with _Results(path) as results:
        return _described(_table(results.head["links"]), results.head["links"])


def summary(path):
    """DataFrames `status` and `reason` (counts with an example), `pareto` and `top` (objectives of the best points)."""
    with _Results(path) as results:
        if results.complete:
            groups = {"status": "status_counts", "reason": "reason_counts", "pareto": "pareto", "top": "top"}
            return {name: _table(results.head["summary"][group]) for name, group in groups.items()}
        return results.computed_summary()


def fault_samples(path, columns=None):
    """The fault samples of a study with faults as a DataFrame: one row per fault of a sample, ascending by point_id, sample, fault."""
    with _Results(path) as results:
        return results.samples(columns)


class _Results:
    """An open result: `head` has the attributes, /study and /links; `segments` are the files of a running sweep's rows."""

    def __init__(self, path):
        path = os.fspath(path).rstrip("/")
        if not os.path.exists(path) and os.path.isdir(path + ".parts"):
            path += ".parts"
        self.path = path
        self.complete = not os.path.isdir(path)
        if self.complete:
            self.segments = []
            self.head = _opened(path, "shardscape-results")
        else:
            names = [n for n in os.listdir(path) if n.startswith("blocks-") and n.endswith(".h5")]
            self.segments = [os.path.join(path, n) for n in sorted(names, key=lambda n: int(n.split("-")[1]))]
            self.head = _opened(os.path.join(path, "manifest.h5"), "shardscape-manifest")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.head.close()

    def _files(self):
        """The files that hold rows, in order, one open at a time."""
        if self.complete:
            yield self.head
        for path in self.segments:
            with _opened(path, "shardscape-segment") as segment:
                if _attribute(segment, "study_sha256") != self.attribute("study_sha256"):
                    raise ResultsError(f"{path}: belongs to another study")
                yield segment

    def attribute(self, name, default=None):
        return _attribute(self.head, name, default)

    def columns(self):
        return dict(self.head["points"].items())

    def column(self, name):
        columns = self.columns()
        if name not in columns:
            raise ResultsError(f"{self.path}: has no column {name}{hint(name, columns)}")
        return columns[name]

    def objectives(self):
        return self.attribute("objectives").split()

    def first_objective(self):
        if not self.objectives():
            raise ResultsError(f"{self.path}: the study has no objective; say by which column")
        return self.objectives()[0]

    def frame(self, columns=None):
        names = list(self.columns()) if columns is None else list(columns)
        parts = {name: [self.column(name)[:0]] for name in names}
        for file in self._files():
            for name in names:
                parts[name].append(_values(file["points"][name]))
        frame = pd.DataFrame({n: _decoded(np.concatenate(parts.pop(n)), self.column(n)) for n in names})
        return self._with_selection(_described(frame, self.head["points"]))

    def _with_selection(self, frame):
        """Which of the study's points the rows are."""
        for name in ("title", "objectives", "study_points", "selection"):
            frame.attrs[name] = self.attribute(name)
        frame.attrs["selection_text"] = self.selection_text()
        return frame

    def selection_text(self):
        """The words of the program's own tables."""
        total, study = self.attribute("total_points"), self.attribute("study_points")
        kinds = {"all": "", "first": f"the first {total:,}", "sample": f"a sample of {total:,}",
                 "search": f"{total:,} that a search visited"}
        chosen = kinds[self.attribute("selection")]
        if self.attribute("shard") != "1/1":
            numbers, _, count = self.attribute("shard").partition("/")
            first, _, last = numbers.partition("-")
            part = f"shards {int(first):,} to {int(last):,}" if last else f"shard {int(first):,}" if first else ""
            start = self.attribute("first_block") * self.attribute("rows_per_block")
            end = min(total, start + self.attribute("block_count") * self.attribute("rows_per_block"))
            part = f"{part} of {int(count):,}" if part else f"rows {start:,} to {end - 1:,}"
            chosen = f"{part} of {chosen}" if chosen else part
        rows = self.stored_rows_text()
        chosen = f"{rows} of {chosen}" if rows and chosen else rows or chosen
        return f"of {study:,} in the study, {chosen}" if chosen else ""

    def stored_rows_text(self):
        """Which of the points the rows are; empty where all."""
        choice, *words = self.attribute("stored_rows", "all").split()
        among = "" if self.complete else "candidates for "
        texts = {"all": lambda: "", "feasible": lambda: "the feasible ones",
                 "pareto": lambda: f"{among}the Pareto front over {', '.join(words)}",
                 "top": lambda: f"{among}the {int(words[0]):,} best by {self.first_objective()}"}
        return texts[choice]()

    def samples(self, columns=None):
        group = "fault_samples"
        if group not in self.head:
            raise ResultsError(f"{self.path}: holds no fault samples; the study has no faults")
        known = dict(self.head[group].items())
        names = list(known) if columns is None else list(columns)
        for name in names:
            if name not in known:
                raise ResultsError(f"{self.path}: has no column {name} of fault samples; columns: {', '.join(known)}")
        parts = {name: [known[name][:0]] for name in names}
        for file in self._files():
            for name in names:
                parts[name].append(_values(file[group][name]))
        frame = pd.DataFrame({n: _decoded(np.concatenate(parts.pop(n)), known[n]) for n in names})
        return self._with_selection(_described(frame, known))

    def computed_summary(self):
        if self.stored_rows_text() and self.segments:
            return self.gathered_summary()
        objectives = self.objectives()
        frame = self.frame(dict.fromkeys(["point_id", "status", "reason", *objectives]))
        tables = {name: _counts(frame, name) for name in ("status", "reason")}
        tables["reason"] = tables["reason"][tables["reason"]["reason"] != "none"].reset_index(drop=True)
        ok = frame[frame["status"] == "ok"].dropna(subset=objectives)[["point_id", *objectives]]
        if not objectives:
            ok = ok.head(0)
        return {**tables, "pareto": self.pareto_of(ok), "top": self.top_of(ok)}

    def gathered_summary(self):
        """Of segments that do not have all rows: each has the summary of all its points."""
        found = {"status_counts": [], "reason_counts": [], "pareto": [], "top": []}
        for file in self._files():
            for name, tables in found.items():
                tables.append(_table(file["summary"][name]))
        found = {name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}
        counts = {name: _added_counts(found[name + "_counts"], name) for name in ("status", "reason")}
        return {**counts, "pareto": self.pareto_of(found["pareto"]), "top": self.top_of(found["top"])}

    def _signs(self):
        better = [_attribute(self.column(name), "better") for name in self.objectives()]
        return np.array([1.0 if direction == "smaller" else -1.0 for direction in better])

    def pareto_of(self, points):
        objectives, signs = self.objectives(), self._signs()
        order = np.lexsort([points["point_id"], *reversed([points[n] * s for n, s in zip(objectives, signs)])])
        ranked = points.iloc[order].reset_index(drop=True)
        return ranked[_front(ranked[objectives].to_numpy() * signs)].reset_index(drop=True)

    def top_of(self, points):
        objectives, signs = self.objectives(), self._signs()
        first = [objectives[0], "point_id"] if objectives else ["point_id"]
        ascending = [not objectives or signs[0] > 0] + [True] * (len(first) - 1)
        return points.sort_values(first, ascending=ascending).head(TOP_COUNT).reset_index(drop=True)


def _opened(path, schema):
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError as error:
        raise MissingResults(f"{path}: there is no such file") from error
    except (OSError, ValueError) as error:  # ValueError: of an empty name
        raise ResultsError(f"{path}: {error}") from error
    version = _attribute(file, "schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:  # known before any text is read
        problem = (f"has schema version {version}; this loader reads version {SCHEMA_VERSION}: make the sweep again with its program, "
                   "or use the release of the program that wrote the file")
    elif _attribute(file, "schema") != schema:
        problem = f"is not a {schema} file"
    else:
        problem = _link_in(file)
        if problem is None:
            return file
    file.close()
    raise ResultsError(f"{path}: {problem}")


def _link_in(group, depth=3):
    """What is wrong where a child, or a child of one, is a link to another place; None where none is."""
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            return f"{group.name.rstrip('/')}/{name} is a soft or external link; a result file holds all its data itself"
        if depth > 0 and group.get(name, getclass=True) is h5py.Group:
            problem = _link_in(group[name], depth - 1)
            if problem is not None:
                return problem
    return None


def _front(costs):
    """Which rows of lexicographically ascending costs no earlier row equals or beats everywhere."""
    keep = np.zeros(len(costs), dtype=bool)
    front = np.empty((0, costs.shape[1]))
    for i, cost in enumerate(costs):
        if not (front <= cost).all(axis=1).any():
            keep[i] = True
            front = np.vstack([front, cost])
    return keep


def _counts(frame, name):
    groups = frame.groupby(name, observed=True)["point_id"]
    counts = groups.agg(count="size", example_point_id="min").reset_index().sort_values(name, ignore_index=True)
    return counts.astype({"count": "uint64", "example_point_id": "uint64"})


def _added_counts(frame, name):
    groups = frame.groupby(name, observed=True)
    counts = groups.agg(count=("count", "sum"), example_point_id=("example_point_id", "min")).reset_index()
    return counts.sort_values(name, ignore_index=True).astype({"count": "uint64", "example_point_id": "uint64"})


def _decoded(values, column):
    """Codes become categoricals, of scales ordered ones; integers with missing values nullable. Numbers stay numbers."""
    ordered = bool(_attribute(column, "ordered", 0))
    meanings = _attribute(column, "flag_meanings")
    if meanings is not None:
        return pd.Categorical.from_codes(values.astype(np.int64), meanings.split(), ordered=ordered)
    if _attribute(column, "dtype") == "bool":
        return values.astype(bool)
    mark = _attribute(column, "_FillValue")
    if mark is not None and np.issubdtype(values.dtype, np.integer):
        return pd.arrays.IntegerArray(values.astype(np.int64), values == mark)
    return values.astype(np.int64) if values.dtype == np.uint8 else values


def _table(group):
    return pd.DataFrame({name: _decoded(_values(column), column) for name, column in group.items()})


def _described(frame, columns):
    """The frame with units and meanings of its columns in `attrs`."""
    frame.attrs["units"] = {name: _attribute(columns[name], "units") for name in frame.columns}
    frame.attrs["long_names"] = {name: _attribute(columns[name], "long_name") for name in frame.columns}
    better = {name: _attribute(columns[name], "better") for name in frame.columns}
    frame.attrs["better"] = {name: direction for name, direction in better.items() if direction is not None}
    return frame


def _attribute(item, name, default=None):
    """A text (stored as UTF-8) or a number."""
    value = item.attrs.get(name, default)
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def _text(dataset):
    return _values(dataset).tobytes().decode(errors="surrogateescape")


def _values(dataset):
    """All values of a dataset, once its checksums have been found right."""
    file = f"{dataset.file.filename}: {dataset.name}"
    if dataset.external or dataset.is_virtual:
        raise ResultsError(f"{file} has its values in other files; a result file holds all its data itself")
    try:
        return _checked_chunks(dataset) if dataset.chunks else _checked_piece(dataset)
    except (OSError, RuntimeError, KeyError, ValueError) as error:  # whatever h5py makes of HDF5's errors
        raise ResultsError(f"{file}: can't be read: {error}") from error


def _checked_piece(dataset):
    values = dataset[()]
    if _attribute(dataset, "checksum") != zlib.crc32(values.tobytes()):
        raise ResultsError(f"{dataset.file.filename}: {dataset.name} is not what its checksum says: the file is damaged")
    return values


def _checked_chunks(dataset):
    sums = _checked_piece(dataset.file["checksums/chunks"])
    first, length = _attribute(dataset, "first_checksum"), dataset.chunks[0]
    for i, row in enumerate(range(0, len(dataset), length)):
        try:
            stored = zlib.crc32(dataset.id.read_direct_chunk((row,))[1])
        except (OSError, RuntimeError, ValueError):
            stored = None
        if first is None or first + i >= len(sums) or stored != sums[first + i]:
            raise ResultsError(f"{dataset.file.filename}: {dataset.name}: the chunk of row {row} is missing, or not what its checksum says: "
                               "the file is damaged, or another program has rewritten it")
    return dataset[:]


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Print the best points of a Shardscape result.")
    parser.add_argument("path", help="OUT.h5 or OUT.h5.parts")
    parser.add_argument("-n", type=int, default=10, metavar="ROWS", help="how many (default: %(default)s)")
    parser.add_argument("--by", metavar="COLUMN", help="rank by this column (default: the first objective)")
    options = parser.parse_args(arguments)
    try:
        rows = best(options.path, n=options.n, by=options.by)
        shown = study(options.path)["objectives"].split()
    except ResultsError as error:
        print(f"shardscape_results: {error}", file=sys.stderr)
        return 1
    if rows.empty:
        print("no feasible point")
        return 0
    with pd.option_context("display.max_rows", None, "display.max_columns", None, "display.width", 200):
        if len(rows) == 1:
            print(rows.T.to_string(header=False))
        else:
            print(rows.loc[:, rows.nunique(dropna=False).gt(1) | rows.columns.isin(shown)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
