// Writes SCHEMA.md as Markdown: the structure of the file, and a table of all columns of both phases.
#include "results_schema/schema_doc.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/rows/columns.h"

namespace shardscape::results {
namespace {

constexpr const char* kIntroduction = R"(# The result file

<!-- Written by print_schema from the table of columns in columns.cc. Do not edit: run `cmake --build --preset dev --target schema_docs`. -->

A finished sweep is one HDF5 file in HDF5's default format; h5py, pandas and h5dump read it as it is. A running or interrupted sweep is a folder
`OUT.h5.parts/`: `manifest.h5` (root attributes, `/study`, `/links`, empty columns) and sealed segments `blocks-<first>-<count>.h5` (the same
columns, consecutive rows, and `/summary` of these; with `stored_rows` the rows that may be stored, and `/summary` of all points). Segments are complete once they have that name and never change afterwards. The program's readers and the Python loader take
either form. Manifest and segments end, after the last byte of HDF5, in a line `sha256:` with the checksum of all bytes before that line; `--resume` and
`verify` hold them against it. The file `lock` is locked by the sweep that runs, `replace-output` says that it was started with `--force`.

What differs between two runs of one study (time, host, threads, command line) lives in attributes of the root only. Every dataset is a pure function of
the study and of the program's version, whatever the number of threads, interruptions or segments.

## Attributes of the root

| attribute | meaning |
|---|---|
| `schema`, `schema_version` | "shardscape-results", )";

constexpr const char* kLayout = R"( |
| `title` | name of the study |
| `created_utc` | when the sweep was started or, in a finished file, assembled |
| `software_version`, `git_commit`, `compiler` | the program |
| `hostname`, `threads`, `command_line` | the run |
| `study_sha256` | over title, resolved study, inputs, objectives and seed |
| `columns_sha256` | over names, units, types and codes of the columns |
| `assumptions` | what the inputs leave out and the results rest on, a line each; empty where there is nothing |
| `seed` | of the study's random draws |
| `objectives` | names of columns, the first one ranks |
| `stored_columns` | where the study has `store.columns`: the columns that it names; the table has them and those that every file has |
| `stored_rows` | where the file does not hold all rows (`store.rows`): "feasible", "top N" or "pareto" and columns; `/summary` is of all points |
| `study_points` | points of the whole study |
| `selection` | which of them were chosen: "all", "first" (`--limit`), "sample" (`--sample`: one of each of `total_points` equal parts, drawn with `sample_seed`) or "search" (those that `search` visited: each stands for itself alone) |
| `total_points`, `rows_per_block` | points chosen; rows per chunk of every column |
| `first_block`, `block_count`, `shard` | the part of the chosen points that this file holds: blocks of `rows_per_block` rows; as "I/N" ("1/1": all of them; "1-2/3": shards put together) |
| `complete` | 1 in a finished file, 0 in a manifest |

## Groups

| path | content |
|---|---|
| `/study/resolved_yaml` | the study with every default filled in, its bytes |
| `/study/sources/*` | every input verbatim; attributes `name` and `sha256`; a slash in a name is a colon here |
| `/points/*` | one 1-D dataset per column, one row per point, or per point that `stored_rows` names, ascending by `point_id`; listed below |
| `/fault_samples/*` | studies with faults: one 1-D dataset per column, one row per fault of a sample, ascending by `point_id`, `sample`, `fault`; of the rows of `/points` that are ok; listed below |
| `/links/*` | `link_id`, `source`, `destination`, `dimension`, `bandwidth_bytes_per_s`, `latency_s` of every link of the fabric |
| `/search/*` | files of `search`: `count` of the study's points by `fate` (`visited`: the rows; `bound`, `memory`, `constraint`, `rule`: cut off with a whole region; `open`: not decided when it was stopped); of the answer `complete` (1: exact, or `within` so much, relative) and `bound` (a value of the objective with bounds, beside memory_peak_bytes the other one, that no point beats which was not visited; NaN where none is left) |
| `/checksums/chunks` | the CRC-32 of every chunk of the file as stored, one dataset after the other; see [Checksums](#checksums) |
| `/summary/status_counts/*` | `status`, `count`, `example_point_id` (the first) of each status that occurs |
| `/summary/reason_counts/*` | the same by `reason` |
| `/summary/pareto/*` | `point_id` and objectives of the feasible points that no other dominates; of points with equal objectives the first |
| `/summary/top/*` | `point_id` and objectives of the ten best feasible points by the first objective, then by `point_id` |

## Dimensions

A finished file follows the NetCDF-4 conventions: all columns of `/points` share the dimension `point`, those of `/fault_samples` `fault_sample`, those of `/links` `link` (HDF5 dimension
scales in the root, without data), so that `xarray.open_dataset("OUT.h5", group="points", engine="h5netcdf")`, netCDF4 and ncdump read it.

## Checksums

HDF5 keeps checksums of object headers, which hold all attributes and the names of all children, and none of values or of where they lie. Every dataset
in one piece has therefore an attribute `checksum`, the CRC-32 (that of zlib) of its bytes; every dataset in chunks an attribute `first_checksum`, the place in
`/checksums/chunks` of its first chunk's. The program and the Python loader hold against them all that they read, so that a chunk which is missing,
or which is another's, is an error. A copy by a program that packs chunks anew (h5repack) is refused likewise.

## Versions

Version 4 has checksums of all values. Version 3 did without texts of variable length, which HDF5 1.10 reads forever where they are damaged, and gave booleans no type of their own. The program and the Python
loader read this version alone, and say so of any other: make the sweep again, or read its file with the release that wrote it.

## Texts

A text in an attribute is a scalar of fixed length, UTF-8 (h5py gives bytes; an empty one is a zero byte). A long text is a dataset of its bytes, UTF-8:
`bytes(file["study/resolved_yaml"][()]).decode()` in h5py. Only the references of columns to their dimensions are of variable length; the program's readers do not
follow them, and `verify` looks at each in a process of its own.

## Columns of /points

Attributes of each: `units` (UDUNITS; "1" where there is none), `long_name`, `group`; `better` (smaller or larger) where an end is better;
`flag_values` and `flag_meanings` (CF conventions) where the numbers are codes. Columns are compressed by shuffle (none for one-byte types) and deflate.

`ordered` is 1 where codes, or the numbers `valid_min` to `valid_max`, are steps of one scale. Type `bool` is a u8, 0 or 1, with the attribute `dtype` = "bool", as
xarray has it.

What was not computed is NaN in floats and the value of `_FillValue` in integers. Times, rates and the breakdown are NaN unless `status` is ok or missed. Memory is NaN where a plan was rejected before memory was counted.
A point that has a figure which is infinite, no number, or beyond all machines (1e30 s or bytes), or would take more passes or iterations than are walked through one by one, has status `out_of_range` and no figures at all.
A point that misses a promise or a constraint on results of the study has status `missed` and all of its figures. Its `reason` is the bound that it misses by
most, one of the codes behind those of the table: column, relation and bound in the column's unit, such as `ttft_p95_s<=2`; `missed_by` says by how much.
)";

constexpr const char* kClosingText = R"(
Each `hardware:` axis of the study adds one column before the outputs, named after its path and unit: f8 for a number, a code with `flag_meanings` for a choice, a whole part or a named variant. `placement:` adds one likewise.
)";

struct Described {
  ColumnInfo column;
  std::string phases;
};

/// The columns of both phases in file order, each once.
std::vector<Described> all_columns() {
  const ColumnTable training(Phase::training, {}, {.faults = true, .reliability = true, .limits = {""}});
  const ColumnTable inference(
      Phase::inference, {},
      {.faults = true, .reliability = true, .load = true, .promises = true, .limits = {""}});
  std::vector<Described> all;
  for (const ColumnInfo& column : training.columns()) {
    all.push_back({column, inference.find(column.name) != nullptr ? "both" : "training"});
  }
  for (const ColumnInfo& column : inference.columns()) {
    if (training.find(column.name) == nullptr) all.push_back({column, "inference"});
  }
  std::ranges::stable_sort(all, {}, [](const Described& d) { return d.column.group; });
  return all;
}

const char* title_of(ColumnGroup group) {
  switch (group) {
    case ColumnGroup::id:
      return "Identity and verdict";
    case ColumnGroup::plan:
      return "Plan";
    case ColumnGroup::workload:
      return "Workload";
    case ColumnGroup::hardware:
      return "Hardware";
    case ColumnGroup::output:
      return "Outputs";
    case ColumnGroup::memory:
      return "Memory of the fullest device (adds up to memory_peak_bytes)";
    case ColumnGroup::breakdown:
      return "Breakdown (adds up to step_time_s, or e2e_s for inference)";
    case ColumnGroup::faults:
      return "Faults and goodput (only in studies with `faults`, `reliability`)";
  }
  return "";
}

std::string row_of(const Described& d) {
  const ColumnInfo& c = d.column;
  const std::string better = c.better == Better::neither ? "" : std::string(name_of(c.better));
  return fmt::format("| `{}` | {} | {} | {} | {} | {}{} |\n", c.name, name_of(c.type), c.unit, d.phases,
                     better, c.long_name, c.meanings.empty() ? "" : " (code)");
}

std::string sample_columns_text() {
  std::string text =
      "\n## Columns of /fault_samples\n\nA sample is drawn from (seed, sample) alone, so the same number is "
      "the "
      "same faults for every point.\n\n| column | type | unit | meaning |\n|---|---|---|---|\n";
  for (const ColumnInfo& c : fault_sample_columns()) {
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", c.name, name_of(c.type), c.unit, c.long_name,
                        c.meanings.empty() ? "" : " (code)");
  }
  return text;
}

std::string codes_of(const ColumnInfo& column) {
  std::string text = "- `" + column.name + "`:";
  for (std::size_t i = 0; i < column.meanings.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? " " : ", ", i, column.meanings[i]);
  }
  return text + "\n";
}

}  // namespace

std::string schema_markdown() {
  std::string text = kIntroduction + std::to_string(kSchemaVersion) + kLayout;
  const auto columns = all_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == 0 || columns[i].column.group != columns[i - 1].column.group) {
      text += fmt::format(
          "\n### {}\n\n| column | type | unit | phase | better | meaning |\n|---|---|---|---|---|---|\n",
          title_of(columns[i].column.group));
    }
    text += row_of(columns[i]);
  }
  text += kClosingText;
  text += sample_columns_text();
  text += "\n## Codes\n\n";
  for (const Described& described : columns) {
    if (!described.column.meanings.empty()) text += codes_of(described.column);
  }
  for (const ColumnInfo& column : fault_sample_columns()) {
    if (column.name == "kind") text += codes_of(column);
  }
  return text;
}

}  // namespace shardscape::results
