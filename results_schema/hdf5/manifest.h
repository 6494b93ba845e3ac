// What is written once, before the first point: the study, the run and the shape of the table. `manifest.h5`
// in the parts folder holds it, with the columns as empty datasets; the finished file carries the same groups
// and attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results_schema/rows/block.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/records.h"
#include "results_schema/rows/search_info.h"
#include "results_schema/rows/stored_rows.h"

namespace shardscape::results {

/// An input file, kept word for word.
struct SourceText {
  std::string name;  ///< "study.yaml", "models/llama3.1-70b.yaml"
  std::string text;
  friend bool operator==(const SourceText&, const SourceText&) = default;
};

/// The links of a fabric, shared by copies, as they are the largest part of a manifest with a large fabric.
class LinkTable {
 public:
  LinkTable() : LinkTable(std::vector<LinkRecord>()) {}
  LinkTable(std::vector<LinkRecord> links)
      : links_(std::make_shared<const std::vector<LinkRecord>>(std::move(links))) {}
  [[nodiscard]] const std::vector<LinkRecord>& records() const { return *links_; }

 private:
  std::shared_ptr<const std::vector<LinkRecord>> links_;
};

/// The part of a manifest that determines the data: runs of equal StudyInfo by the same software give equal datasets.
struct StudyInfo {
  std::string title;
  std::string resolved_yaml;
  std::vector<SourceText> sources;  ///< distinct names
  /// The assumptions that the results rest on beyond the inputs, one per line.
  std::string assumptions;
  /// Columns that the study asks for, beside those that every file has; nothing: all columns.
  std::optional<std::vector<std::string>> stored_columns = std::nullopt;
  StoredRows stored_rows = {};
  std::vector<std::string>
      objectives;  ///< names of columns that have a better direction; the first one ranks
  std::uint64_t seed = 0;
  LinkTable links;                      ///< links of the study's own fabric, without hardware axes
  std::vector<std::string> dimensions;  ///< the names that LinkRecord::dimension is an index of
};

/// Name of the root attribute with StudyInfo::stored_columns.
inline constexpr const char* kStoredColumns = "stored_columns";
/// Name of the root attribute with StudyInfo::stored_rows as text; absent in files with all rows.
inline constexpr const char* kStoredRows = "stored_rows";

/// The part that differs from run to run. It is stored in attributes of the root only, never in a dataset.
struct RunInfo {
  std::string created_utc;  ///< ISO 8601
  std::string software_version, git_commit, compiler, hostname, command_line;
  std::int32_t threads = 1;
};

struct Manifest {
  StudyInfo study;
  RunInfo run;
  BlockLayout layout;
  ShardRange shards;  ///< the shards that layout.blocks belongs to
  std::vector<ColumnInfo> columns;
  /// Columns of /fault_samples (fault_sample_columns()); empty where the study has no faults.
  std::vector<ColumnInfo> sample_columns;
  /// For a search: what happened to the points that are not rows.
  std::optional<SearchInfo> search = std::nullopt;
};

/// The identity of a study: SHA-256 (hexadecimal) over title, resolved YAML, sources and seed.
std::string study_sha256(const StudyInfo& study);

/// The directions of improvement of the columns that decide which rows are stored.
std::vector<Better> deciding_directions(const Manifest& manifest);

/// Everything wrong with a manifest as one reason per entry: unknown or undirected objectives, names used
/// twice, links of unknown dimensions, a layout that is not one.
std::vector<std::string> manifest_problems(const Manifest& manifest);

/// Bytes of a finished file beside its packed chunks: headers, texts, the links, the indices of chunks and their
/// checksums. `rows`, `samples`: the rows that /points and /fault_samples are going to have.
std::uint64_t bytes_beside_chunks(const Manifest& manifest, std::uint64_t rows, std::uint64_t samples);

}  // namespace shardscape::results
