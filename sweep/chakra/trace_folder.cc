#include "sweep/chakra/trace_folder.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/base/suggest.h"
#include "sweep/chakra/node_codec.h"
#include "sweep/chakra/record_file.h"
#include "sweep/network_case/json_document.h"

namespace shardscape::chakra {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "shardscape";
constexpr const char* kVersion = "0.0.4";  // of the format's schema
constexpr std::size_t kReported = 20;
constexpr std::int32_t kMostRanks = 1 << 20;

/// Of "PREFIX.RANK.et".
struct TraceName {
  std::string prefix;
  std::int32_t rank = 0;
};

std::optional<TraceName> parse_name(const fs::path& file) {
  if (file.extension() != ".et") return std::nullopt;
  const std::string stem = file.stem().string();
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  TraceName name{stem.substr(0, dot), 0};
  const char* const end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + dot + 1, end, name.rank);
  if (error != std::errc() || stop != end || name.rank < 0 || name.rank >= kMostRanks) return std::nullopt;
  return name;
}

class Loader {
 public:
  explicit Loader(const fs::path& folder) { loaded_.folder = folder; }

  tl::expected<LoadedTrace, std::string> load() {
    if (find_files()) {
      read_groups();
      if (problems_.empty()) read_ranks();
    }
    if (!problems_.empty()) return tl::unexpected(text());
    return std::move(loaded_);
  }

 private:
  void report(const fs::path& where, const std::string& what) {
    if (problems_.size() < kReported) {
      problems_.push_back(where.string() + ": " + what);
    } else {
      ++unreported_;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (const std::string& problem : problems_) lines += problem + "\n";
    if (unreported_ > 0)
      lines += loaded_.folder.string() + ": and " + std::to_string(unreported_) + " more problems\n";
    return lines;
  }

  bool find_files() {
    std::error_code error;
    std::map<std::string, std::map<std::int32_t, fs::path>> by_prefix;
    std::vector<fs::path> json;
    for (fs::directory_iterator entry(loaded_.folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& path = entry->path();
      if (path.extension() == ".json") json.push_back(path);
      if (const auto name = parse_name(path)) {
        if (!by_prefix[name->prefix].emplace(name->rank, path).second) {
          report(path, "is a second trace of rank " + std::to_string(name->rank));
        }
      }
    }
    if (error) {
      report(loaded_.folder, "cannot be read as a folder of traces: " + error.message());
    } else if (by_prefix.empty()) {
      report(loaded_.folder, "has no traces; they are called PREFIX.RANK.et");
    } else if (by_prefix.size() > 1) {
      report(loaded_.folder, "has traces of several runs, '" + by_prefix.begin()->first + "' and '" +
                                 std::next(by_prefix.begin())->first + "'; give each a folder of its own");
    }
    if (!problems_.empty()) return false;
    for (const auto& [rank, path] : by_prefix.begin()->second) {
      const auto expected = static_cast<std::int32_t>(loaded_.files.size());
      if (rank != expected) {
        report(loaded_.folder, "has a trace of rank " + std::to_string(rank) + ", but none of rank " +
                                   std::to_string(expected));
        return false;
      }
      loaded_.files.push_back(path);
    }
    choose_groups_file(json);
    return true;
  }

  void choose_groups_file(const std::vector<fs::path>& json) {
    std::error_code error;
    const fs::path usual = loaded_.folder / kGroupsFile;
    if (fs::exists(usual, error)) {
      loaded_.groups_file = usual;
    } else if (json.size() == 1) {
      loaded_.groups_file = json.front();
    }
  }

  void read_groups() {
    const fs::path& file = loaded_.groups_file;
    if (file.empty()) return;
    std::ifstream in(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    if (!in) return report(file, "cannot be read");
    const auto document = network_case::parse_json(content);
    if (!document) {
      const network_case::SyntaxError& error = document.error();
      return report(file.string() + ":" + std::to_string(error.line) + ":" + std::to_string(error.column),
                    error.message);
    }
    if (!document->is_object()) return report(file, "is no object from names of groups to lists of ranks");
    for (const auto& [name, list] : document->items()) read_group(name, list);
  }

  void read_group(const std::string& name, const nlohmann::json& list) {
    trace::ProcessGroup group{name, {}, {}};
    if (!list.is_array() || list.empty()) {
      return report(loaded_.groups_file, "group '" + name + "' is no list of ranks");
    }
    for (const nlohmann::json& rank : list) {
      const bool good = rank.is_number_integer() && rank >= 0 && rank < kMostRanks;
      if (!good) return report(loaded_.groups_file, "group '" + name + "': " + rank.dump() + " is no rank");
      group.ranks.push_back(rank.get<std::int32_t>());
    }
    indices_[{name, {}}] = static_cast<std::int32_t>(loaded_.trace.groups.size());
    loaded_.trace.groups.push_back(std::move(group));
  }

  std::int32_t find_group(const GroupName& name, std::string& problem) {
    const auto found = indices_.find(name);
    if (found != indices_.end()) return found->second;
    if (name.name.empty()) {
      const auto index = static_cast<std::int32_t>(loaded_.trace.groups.size());
      loaded_.trace.groups.push_back({"", {}, name.dimensions});
      indices_[name] = index;
      return index;
    }
    if (loaded_.groups_file.empty()) {
      problem = "names process group '" + name.name + "', and no " + kGroupsFile +
                " beside the traces says who is in it";
      return -1;
    }
    std::vector<std::string> names;
    for (const trace::ProcessGroup& group : loaded_.trace.groups) {
      if (!group.name.empty()) names.push_back(group.name);
    }
    problem = "names process group '" + name.name + "', which " + loaded_.groups_file.filename().string() +
              " does not have" + did_you_mean(name.name, names);
    return -1;
  }

  void read_ranks() {
    for (std::size_t r = 0; r < loaded_.files.size(); ++r) {
      read_rank(static_cast<std::int32_t>(r), loaded_.files[r]);
    }
  }

  void read_rank(std::int32_t rank, const fs::path& file) {
    RecordReader reader(file);
    loaded_.trace.ranks.emplace_back();
    ChakraProtoMsg::GlobalMetadata metadata;
    RecordReader::Outcome outcome = reader.next(metadata);
    if (outcome == RecordReader::Outcome::end)
      return report(file, "is empty (rank " + std::to_string(rank) + ")");
    const GroupLookup lookup = [this](const GroupName& name, std::string& problem) {
      return find_group(name, problem);
    };
    ChakraProtoMsg::Node node;
    std::size_t nodes = 0;
    for (; outcome == RecordReader::Outcome::message; ++nodes) {
      outcome = reader.next(node);
      if (outcome != RecordReader::Outcome::message) break;
      const auto decoded = decode(node, rank, lookup, loaded_.trace.ranks.back());
      if (!decoded) report(file, place(node.id(), node.name(), rank) + ": " + decoded.error());
    }
    if (outcome == RecordReader::Outcome::broken) {
      report(file, reader.problem() + " (rank " + std::to_string(rank) + ", after " + std::to_string(nodes) +
                       " nodes)");
    }
  }

 public:
  static std::string place(std::uint64_t id, const std::string& name, std::int32_t rank) {
    return "node " + std::to_string(id) + (name.empty() ? "" : " '" + name + "'") + " (rank " +
           std::to_string(rank) + ")";
  }

 private:
  LoadedTrace loaded_;
  std::map<GroupName, std::int32_t> indices_;
  std::vector<std::string> problems_;
  std::size_t unreported_ = 0;
};

std::string name_of_node(const trace::RankTrace& rank, std::uint64_t id) {
  const auto found = std::ranges::find(rank.nodes, id, &trace::TraceNode::id);
  return found != rank.nodes.end() ? found->name : "";
}

void write_groups(const fs::path& file, const std::vector<trace::ProcessGroup>& groups) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const trace::ProcessGroup& group : groups) {
    if (!group.ranks.empty()) document[group.name] = group.ranks;
  }
  std::ofstream out(file);
  out << document.dump() << '\n';
  out.close();
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace

tl::expected<LoadedTrace, std::string> load(const fs::path& folder) { return Loader(folder).load(); }

std::string located(const trace::TraceProblems& problems, const LoadedTrace& loaded) {
  std::string lines;
  for (const trace::TraceProblem& problem : problems) {
    if (problem.rank < 0) {
      lines += (loaded.groups_file.empty() ? loaded.folder : loaded.groups_file).string();
    } else {
      const auto rank = static_cast<std::size_t>(problem.rank);
      lines += loaded.files[rank].string() + ": ";
      lines += problem.node
                   ? Loader::place(*problem.node, name_of_node(loaded.trace.ranks[rank], *problem.node),
                                   problem.rank)
                   : "rank " + std::to_string(problem.rank);
    }
    lines += ": " + problem.message + "\n";
  }
  return lines;
}

TraceWriter::TraceWriter(fs::path folder, const std::vector<trace::ProcessGroup>& groups,
                         std::size_t dimensions)
    : folder_(std::move(folder)), groups_(groups), dimensions_(dimensions) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw std::runtime_error(folder_.string() + ": cannot be made: " + error.message());
  write_groups(folder_ / kGroupsFile, groups_);
}

void TraceWriter::write_rank(std::int32_t rank, const trace::RankTrace& trace) {
  const fs::path file = folder_ / (std::string(kPrefix) + "." + std::to_string(rank) + ".et");
  RecordWriter writer(file);
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kVersion);
  writer.add(metadata);
  for (const trace::TraceNode& node : trace.nodes) {
    writer.add(encode(node, trace, rank, groups_, dimensions_));
  }
  if (!writer.close()) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace shardscape::chakra
