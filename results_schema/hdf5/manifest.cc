// Writes and reads the manifest (root attributes, /study, /links, the empty columns), checks it, and computes the
// fingerprints of studies.
#include "results_schema/hdf5/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <set>

#include "engine/base/words.h"
#include "results_schema/disk/sha256.h"
#include "results_schema/hdf5/column_attributes.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/hdf5/tables_io.h"

namespace shardscape::results {

namespace {

/// Appends each part with its length, so that different lists of parts give different texts.
void append_part(std::string& text, const std::string& part) {
  text += fmt::format("{}:{}\n", part.size(), part);
}

/// Replaces slashes, which HDF5 names cannot have; the original name goes into an attribute.
std::string object_name(std::string name) {
  std::ranges::replace(name, '/', ':');
  return name;
}

bool is_layout(const BlockLayout& layout) {
  const std::uint32_t rows = layout.rows_per_block;
  if (!std::has_single_bit(rows) || rows > kMaxRowsPerBlock) return false;
  const std::uint64_t all = layout.total_points / rows + (layout.total_points % rows != 0 ? 1 : 0);
  return layout.blocks.first <= all && layout.blocks.count <= all - layout.blocks.first;
}

void write_links(const H5File& file, const StudyInfo& study) {
  file.create_group("/links");
  const std::vector<LinkRecord>& links = study.links.records();
  const auto integers = [&](const std::string& name, auto member, const char* meaning) {
    return file.write_values<std::int32_t>("/links/" + name, links, member, "1", meaning);
  };
  const auto numbers = [&](const std::string& name, auto member, const char* unit, const char* meaning) {
    return file.write_values<double>("/links/" + name, links, member, unit, meaning);
  };
  integers("link_id", &LinkRecord::link_id, "identity of the link in the fabric");
  integers("source", &LinkRecord::source, "vertex the link leaves: a rank, or a switch above the ranks");
  integers("destination", &LinkRecord::destination, "vertex the link enters");
  const Dataset dimension =
      integers("dimension", &LinkRecord::dimension, "dimension of the fabric that the link belongs to");
  if (!study.dimensions.empty()) set_codes(dimension, ColumnType::i32, study.dimensions);
  numbers("bandwidth_bytes_per_s", &LinkRecord::bandwidth_bytes_per_s, "byte s-1",
          "bandwidth of the link in its direction");
  numbers("latency_s", &LinkRecord::latency_s, "s", "latency of the link");
}

std::vector<LinkRecord> read_links(const H5File& file) {
  const auto integers = [&](const char* name) {
    return file.dataset(std::string("/links/") + name).read_all<std::int32_t>();
  };
  const auto id = integers("link_id"), source = integers("source"), destination = integers("destination"),
             dimension = integers("dimension");
  const auto bandwidth = file.dataset("/links/bandwidth_bytes_per_s").read_all<double>();
  const auto latency = file.dataset("/links/latency_s").read_all<double>();
  const std::size_t count = id.size();
  if (source.size() != count || destination.size() != count || dimension.size() != count ||
      bandwidth.size() != count || latency.size() != count) {
    file.fail("/links has columns of different lengths");
  }
  std::vector<LinkRecord> links;
  links.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    links.push_back({id[i], source[i], destination[i], dimension[i], bandwidth[i], latency[i]});
  }
  return links;
}

void write_study(const H5File& file, const StudyInfo& study) {
  file.create_group("/study");
  file.write_text("/study/resolved_yaml", study.resolved_yaml, "the study with every default filled in");
  file.create_group("/study/sources");
  for (const SourceText& source : study.sources) {
    const Dataset text =
        file.write_text("/study/sources/" + object_name(source.name), source.text, "an input verbatim");
    text.set_attribute("name", source.name);
    text.set_attribute("sha256", sha256_hex(source.text));
  }
}

std::vector<SourceText> read_sources(const H5File& file) {
  std::vector<SourceText> sources;
  for (const std::string& name : file.children("/study/sources")) {
    const std::string path = "/study/sources/" + name;
    sources.push_back({file.dataset(path).text_attribute("name", name), file.read_text(path)});
  }
  return sources;
}

/// Cuts a text to fit an object header, which holds 64 KiB.
std::string clipped(const std::string& text) {
  constexpr std::size_t kLimit = 32 * 1024;
  return text.size() <= kLimit ? text : text.substr(0, kLimit) + "...";
}

void write_root(const H5File& file, const char* schema, const Manifest& m, const RunInfo& run,
                bool complete) {
  file.set_attribute("schema", schema);
  file.set_attribute("schema_version", kSchemaVersion);
  file.set_attribute("title", clipped(m.study.title));
  file.set_attribute("created_utc", run.created_utc);
  file.set_attribute("software_version", run.software_version);
  file.set_attribute("git_commit", run.git_commit);
  file.set_attribute("compiler", run.compiler);
  file.set_attribute("hostname", run.hostname);
  file.set_attribute("threads", std::int64_t{run.threads});
  file.set_attribute("command_line", clipped(run.command_line));
  file.set_attribute("study_sha256", study_sha256(m.study));
  file.set_attribute("columns_sha256", columns_sha256(m.columns));
  file.set_attribute("assumptions", clipped(m.study.assumptions));
  file.set_attribute("seed", m.study.seed);
  file.set_attribute("objectives", joined(m.study.objectives, " "));
  if (m.study.stored_columns) file.set_attribute(kStoredColumns, joined(*m.study.stored_columns, " "));
  if (!m.study.stored_rows.all()) file.set_attribute(kStoredRows, to_string(m.study.stored_rows));
  file.set_attribute("total_points", m.layout.total_points);
  file.set_attribute("rows_per_block", std::uint64_t{m.layout.rows_per_block});
  file.set_attribute("first_block", m.layout.blocks.first);
  file.set_attribute("block_count", m.layout.blocks.count);
  file.set_attribute("study_points", m.layout.selection.study_points);
  file.set_attribute("selection", name_of(m.layout.selection.kind));
  file.set_attribute("sample_seed", m.layout.selection.seed);
  file.set_attribute("shard", to_string(m.shards));
  file.set_attribute("complete", std::uint64_t{complete});
}

RunInfo read_run(const H5File& file) {
  RunInfo run;
  run.created_utc = file.text_attribute("created_utc");
  run.software_version = file.text_attribute("software_version");
  run.git_commit = file.text_attribute("git_commit");
  run.compiler = file.text_attribute("compiler");
  run.hostname = file.text_attribute("hostname");
  run.command_line = file.text_attribute("command_line");
  run.threads = static_cast<std::int32_t>(file.number_attribute("threads"));
  return run;
}

void write_search(const H5File& file, const SearchInfo& search) {
  file.create_group("/search");
  std::vector<std::int32_t> fates;
  std::vector<std::string> names;
  for (const Fate fate : enum_values<Fate>()) {
    fates.push_back(static_cast<std::int32_t>(fate));
    names.emplace_back(name_of(fate));
  }
  const Dataset fate =
      file.write_values<std::int32_t>("/search/fate", fates, "1", "what became of points of the study");
  set_codes(fate, ColumnType::i32, names);
  file.write_values<std::uint64_t>("/search/count", search.counts, "1", "points with that fate");
  const auto number = [&](const char* name, double value, const char* meaning) {
    file.write_values<double>(name, std::span(&value, 1), "1", meaning);
  };
  number("/search/complete", search.complete ? 1 : 0, "1 where every point was visited or cut off");
  number("/search/within", search.within, "how much worse than the best the answer may be, relative");
  number("/search/bound", search.bound,
         "value of the objective with bounds that no point beats which was not visited");
}

std::optional<SearchInfo> read_search(const H5File& file) {
  if (!file.has("/search")) return std::nullopt;
  const auto number = [&](const char* name) {
    const auto values = file.dataset(name).read_all<double>();
    if (values.size() != 1) file.fail(std::string(name) + " is not one number");
    return values.front();
  };
  SearchInfo search;
  const auto counts = file.dataset("/search/count").read_all<std::uint64_t>();
  if (counts.size() != search.counts.size()) file.fail("/search/count has another number of fates");
  std::ranges::copy(counts, search.counts.begin());
  search.complete = number("/search/complete") != 0;
  search.within = number("/search/within");
  search.bound = number("/search/bound");
  return search;
}

PointSelection read_selection(const H5File& file, std::uint64_t total_points) {
  const auto kind = parse_enum<SelectionKind>(file.text_attribute("selection"));
  const PointSelection selection{kind.value_or(SelectionKind::all), file.number_attribute("study_points"),
                                 file.number_attribute("sample_seed")};
  const bool some = selection.kind != SelectionKind::all;
  const bool fits =
      total_points <= selection.study_points &&
      (some == (total_points < selection.study_points) || selection.kind == SelectionKind::search);
  if (!kind || !fits) file.fail("its selection does not fit its number of points");
  return selection;
}

StoredRows read_stored_rows(const H5File& file) {
  if (H5Aexists(file.id(), kStoredRows) <= 0) return {};
  const auto rows = parse_stored_rows(file.text_attribute(kStoredRows));
  if (!rows) file.fail(std::string("attribute ") + kStoredRows + " names no choice of rows");
  return *rows;
}

ShardRange read_shards(const H5File& file) {
  const auto shards = parse_shards(file.text_attribute("shard"));
  if (!shards) file.fail("attribute shard is not I/N");
  return *shards;
}

BlockLayout read_layout(const H5File& file) {
  const std::uint64_t rows_per_block = file.number_attribute("rows_per_block");
  if (rows_per_block > kMaxRowsPerBlock) file.fail("rows_per_block is out of range");
  const std::uint64_t points = file.number_attribute("total_points");
  const BlockLayout layout{points,
                           static_cast<std::uint32_t>(rows_per_block),
                           {file.number_attribute("first_block"), file.number_attribute("block_count")},
                           read_selection(file, points)};
  if (!is_layout(layout)) file.fail("its blocks do not fit its number of points");
  return layout;
}

/// Bytes of the index of a column (HDF5 File Format Specification, "Version 1 B-trees"): nodes of up to 64 entries, of
/// which those that are full have given a tenth to the next.
std::uint64_t index_bytes(std::uint64_t rows, std::uint64_t chunk_rows) {
  constexpr std::uint64_t kEntries = 64, kFilled = 58, kNode = 24 + (kEntries + 1) * 24 + kEntries * 8;
  const std::uint64_t chunks = rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0);
  std::uint64_t nodes = 0;
  for (std::uint64_t level = chunks; level > 0;) {
    const std::uint64_t here = level <= kEntries ? 1 : level / kFilled + 1;
    nodes += here;
    level = here == 1 ? 0 : here;
  }
  return nodes * kNode;
}

struct NeededColumn {
  const char* name;
  ColumnType type;
};

void require_columns(const H5File& file, const std::string& group, const std::vector<ColumnInfo>& columns,
                     std::initializer_list<NeededColumn> needed) {
  for (const NeededColumn& column : needed) {
    const auto found = std::ranges::find(columns, column.name, &ColumnInfo::name);
    if (found == columns.end()) file.fail("has no column " + group + "/" + column.name);
    if (found->type != column.type) {
      file.fail(fmt::format("{}/{} is of type {}, not {}", group, column.name, name_of(found->type),
                            name_of(column.type)));
    }
  }
}

/// Checks what every reader relies on.
void check_table(const H5File& file, const Manifest& manifest) {
  const auto& columns = manifest.columns;
  require_columns(file, "/points", columns,
                  {{"point_id", ColumnType::u64}, {"status", ColumnType::u8}, {"reason", ColumnType::u8}});
  const bool training = std::ranges::find(columns, "step_time_s", &ColumnInfo::name) != columns.end();
  if (!training) require_columns(file, "/points", columns, {{"e2e_s", ColumnType::f8}});
  if (!manifest.sample_columns.empty()) {
    require_columns(file, "/points", columns,
                    {{"fault_samples", ColumnType::i32}, {"slowdown_mean", ColumnType::f8}});
    require_columns(file, kSamplesGroup, manifest.sample_columns,
                    {{"point_id", ColumnType::u64},
                     {"sample", ColumnType::i32},
                     {"fault", ColumnType::u8},
                     {"step_time_s", ColumnType::f8},
                     {"slowdown", ColumnType::f8}});
  }
  const std::vector<std::string> problems = manifest_problems(manifest);
  if (!problems.empty()) file.fail(problems.front());
}

}  // namespace

std::string study_sha256(const StudyInfo& study) {
  std::string text;
  append_part(text, study.title);
  append_part(text, study.resolved_yaml);
  append_part(text, std::to_string(study.seed));
  append_part(text, joined(study.objectives, " "));
  for (const SourceText& source : study.sources) {
    append_part(text, source.name);
    append_part(text, source.text);
  }
  return sha256_hex(text);
}

std::vector<Better> deciding_directions(const Manifest& manifest) {
  return directions_of(manifest.study.stored_rows.measures(manifest.study.objectives), manifest.columns);
}

std::vector<std::string> manifest_problems(const Manifest& manifest) {
  std::vector<std::string> problems;
  std::set<std::string> names;
  for (const SourceText& source : manifest.study.sources) {
    const std::string name = object_name(source.name);
    if (name.empty() || name == ".")
      problems.push_back("source name \"" + source.name + "\" can't be stored");
    if (!names.insert(name).second) problems.push_back("source name \"" + source.name + "\" is used twice");
  }
  const auto require_direction = [&](const char* what, const std::string& name) {
    const auto found = std::ranges::find(manifest.columns, name, &ColumnInfo::name);
    if (found == manifest.columns.end()) {
      problems.push_back(fmt::format("{} {} is not a column of this study", what, name));
    } else if (found->better == Better::neither) {
      problems.push_back(fmt::format("{} {} has no better direction", what, name));
    }
  };
  for (const std::string& name : manifest.study.objectives) require_direction("objective", name);
  for (const std::string& name : manifest.study.stored_rows.front)
    require_direction("column of the front", name);
  if (manifest.study.stored_rows.choice == RowChoice::top && manifest.study.objectives.empty())
    problems.emplace_back("the best rows are stored, and no objective says which they are");
  for (const LinkRecord& link : manifest.study.links.records()) {
    if (link.dimension < 0 || static_cast<std::size_t>(link.dimension) >= manifest.study.dimensions.size()) {
      problems.push_back(fmt::format("link {} lies in no dimension", link.link_id));
    }
  }
  if (!is_layout(manifest.layout)) problems.emplace_back("the blocks do not fit the number of points");
  return problems;
}

void check_schema(const H5File& file, const char* schema) {
  const bool versioned = H5Aexists(file.id(), "schema") > 0 && H5Aexists(file.id(), "schema_version") > 0;
  const std::uint64_t version = versioned ? file.number_attribute("schema_version") : kSchemaVersion;
  if (version != kSchemaVersion) {  // known before any text is read
    file.fail(
        fmt::format("has schema version {}; this program reads version {}: make the sweep again with it, "
                    "or use the release of the program that wrote the file",
                    version, kSchemaVersion));
  }
  if (!versioned || file.text_attribute("schema") != schema)
    file.fail(fmt::format("is not a {} file", schema));
}

void write_manifest(const H5File& file, const char* schema, const Manifest& manifest, const RunInfo& run,
                    bool complete) {
  write_root(file, schema, manifest, run, complete);
  write_study(file, manifest.study);
  write_links(file, manifest.study);
  if (manifest.search) write_search(file, *manifest.search);
  file.create_group("/points");
}

Manifest read_manifest(const H5File& file) {
  Manifest manifest;
  manifest.study.title = file.text_attribute("title");
  manifest.study.resolved_yaml = file.read_text("/study/resolved_yaml");
  manifest.study.sources = read_sources(file);
  manifest.study.objectives = words(file.text_attribute("objectives"));
  if (H5Aexists(file.id(), kStoredColumns) > 0)
    manifest.study.stored_columns = words(file.text_attribute(kStoredColumns));
  manifest.study.stored_rows = read_stored_rows(file);
  manifest.study.assumptions = file.text_attribute("assumptions");
  manifest.study.seed = file.number_attribute("seed");
  manifest.study.links = read_links(file);
  manifest.study.dimensions = words(file.dataset("/links/dimension").text_attribute("flag_meanings"));
  manifest.run = read_run(file);
  manifest.layout = read_layout(file);
  manifest.shards = read_shards(file);
  manifest.search = read_search(file);
  for (const std::string& name : file.children("/points"))
    manifest.columns.push_back(column_info(file.dataset("/points/" + name), name));
  if (file.has(kSamplesGroup)) manifest.sample_columns = read_sample_columns(file);
  check_table(file, manifest);
  return manifest;
}

std::uint64_t bytes_beside_chunks(const Manifest& manifest, std::uint64_t rows, std::uint64_t samples) {
  const QuietErrors quiet;
  H5File file = H5File::create_image("size");
  write_manifest(file, kResultsSchema, manifest, manifest.run, true);
  std::uint64_t indices = 0;
  for (const ColumnInfo& column : manifest.columns) {
    const Dataset made = file.create_column("/points", column, rows, manifest.layout.rows_per_block);
    indices += index_bytes(rows, made.chunk_rows());
  }
  if (!manifest.sample_columns.empty()) {
    for (const Dataset& column : create_samples(file, manifest.sample_columns, samples))
      indices += index_bytes(samples, column.chunk_rows());
  }
  write_summary(file, {}, manifest.study.objectives, manifest.columns);
  write_dimensions(file);
  return file.image().size() + indices;
}

}  // namespace shardscape::results
