// Reads a folder of Chakra traces, groups first and then rank by rank, collecting problems up to a limit, and writes
// such folders. Their files are length-prefixed protobuf messages.
#include "sweep/chakra/trace_folder.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/chakra/node_codec.h"
#include "sweep/chakra/process_groups.h"
#include "sweep/input/input_file.h"
#include "sweep/network_case/json_document.h"

namespace shardscape::chakra {

namespace {

/// Reads one file message after message. Lengths are checked against the rest of the file before anything is allocated.
class RecordReader {
 public:
  enum class Outcome { message, end, broken };

  /// Does not fail where the file can't be opened: the first next() then returns `broken`.
  explicit RecordReader(const std::filesystem::path& file);

  /// Reads the next message into `message`.
  Outcome next(google::protobuf::MessageLite& message);
  /// What is wrong with the file, after next() has returned `broken`; nothing more can be read then.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Where the message read last begins in the file, in bytes, for texts about it.
  [[nodiscard]] std::uint64_t offset() const { return begin_; }

 private:
  Outcome broken(std::string problem);

  std::string unreadable_;  ///< why the file is none; "" where it is one
  std::ifstream in_;
  std::uint64_t left_ = 0, size_ = 0, begin_ = 0;
  std::string buffer_, problem_;
};

/// Writes message after message; whether all of it succeeded is known after close().
class RecordWriter {
 public:
  explicit RecordWriter(const std::filesystem::path& file);
  void add(const google::protobuf::MessageLite& message);
  /// Returns false where anything could not be written.
  [[nodiscard]] bool close();

 private:
  std::ofstream out_;
  std::string buffer_;
};

/// The most bytes of one record (64 MiB): a node holds names, shapes and a list of dependencies of ten bytes each.
constexpr std::uint64_t kLongestRecord = std::uint64_t{1} << 26;

RecordReader::RecordReader(const std::filesystem::path& file) : unreadable_(input::unreadable(file)) {
  std::error_code error;
  if (!unreadable_.empty()) return;
  in_.open(file, std::ios::binary);
  const auto size = std::filesystem::file_size(file, error);
  if (!error) left_ = size_ = size;
}

RecordReader::Outcome RecordReader::broken(std::string problem) {
  problem_ = std::move(problem);
  left_ = 0;
  return Outcome::broken;
}

RecordReader::Outcome RecordReader::next(google::protobuf::MessageLite& message) {
  if (!problem_.empty()) return Outcome::broken;
  if (!unreadable_.empty()) return broken(unreadable_);
  if (!in_) return broken("cannot be read");
  if (left_ == 0) return Outcome::end;
  begin_ = size_ - left_;
  std::uint64_t length = 0;
  for (int shift = 0;; shift += 7) {
    const int byte = in_.get();
    if (byte < 0) return broken(fmt::format("cut off within the length at byte {}", begin_));
    --left_;
    // A length has 64 bits, seven per byte, so the tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) return broken(fmt::format("no length of a message at byte {}", begin_));
    length |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) break;
  }
  if (length > left_) {
    return broken(fmt::format("cut off: the message at byte {} says it has {} bytes, the file has {} more",
                              begin_, length, left_));
  }
  if (length > kLongestRecord) {
    return broken(
        fmt::format("the message at byte {} says it has {} bytes, more than any node has", begin_, length));
  }
  buffer_.resize(static_cast<std::size_t>(length));
  in_.read(buffer_.data(), static_cast<std::streamsize>(length));
  if (in_.gcount() != static_cast<std::streamsize>(length)) return broken("cannot be read");
  left_ -= length;
  const google::protobuf::LogSilencer silence;  // parse errors are reported by this class, in one piece
  if (!message.ParseFromString(buffer_)) {
    return broken(
        fmt::format("the {} bytes at byte {} are no message of an execution trace", length, begin_));
  }
  return Outcome::message;
}

RecordWriter::RecordWriter(const std::filesystem::path& file) : out_(file, std::ios::binary) {}

void RecordWriter::add(const google::protobuf::MessageLite& message) {
  message.SerializeToString(&buffer_);
  std::array<std::uint8_t, 10> length{};
  const std::uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(buffer_.size(), length.data());
  for (const std::uint8_t* byte = length.data(); byte != end; ++byte) out_.put(static_cast<char>(*byte));
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
}

bool RecordWriter::close() {
  out_.close();
  return static_cast<bool>(out_);
}

// Collectives that a trace has twice: as calls of the host and as the kernels that they start.
//
// PyTorch's observer records c10d and nccl operators, which Chakra's converter makes communication nodes of
// the CPU; what moves the data are the kernels of the GPU that its trace linker hangs below them, through
// nested calls or the operator record_param_comms. A call with no kernel below it is traffic that the trace
// lacks.

constexpr const char* kCallRecord = "record_param_comms";

/// Climbs the dependencies from each kernel to the host calls that led to it, and notes which calls it has met.
class KernelLinks {
 public:
  KernelLinks(const timeline::RankTrace& rank, const std::vector<std::uint64_t>& calls)
      : rank_(rank), calls_(calls.begin(), calls.end()) {
    for (std::size_t i = 0; i < rank.nodes.size(); ++i) index_.emplace(rank.nodes[i].id, i);
    for (const timeline::TraceNode& node : rank.nodes) {
      const bool kernel = node.kind == timeline::NodeKind::collective ||
                          node.kind == timeline::NodeKind::send || node.kind == timeline::NodeKind::receive;
      if (kernel) climb(node);
    }
  }

  [[nodiscard]] bool linked(std::uint64_t call) const { return seen_.contains(call); }

 private:
  void climb(const timeline::TraceNode& kernel) {
    std::vector<const timeline::TraceNode*> open = {&kernel};
    while (!open.empty()) {
      const timeline::TraceNode& node = *open.back();
      open.pop_back();
      for (const std::uint64_t id : rank_.dependencies_of(node)) {
        const auto found = index_.find(id);
        if (found == index_.end() || !leads(rank_.nodes[found->second]) || !seen_.insert(id).second) continue;
        open.push_back(&rank_.nodes[found->second]);
      }
    }
  }
  [[nodiscard]] bool leads(const timeline::TraceNode& node) const {
    return calls_.contains(node.id) || (node.host && node.name.find(kCallRecord) != std::string::npos);
  }

  const timeline::RankTrace& rank_;
  std::unordered_set<std::uint64_t> calls_, seen_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
};

/// Returns those of `calls` (ids of host nodes) below which no communication of the device hangs. O(nodes +
/// dependencies).
std::vector<std::uint64_t> calls_without_kernels(const timeline::RankTrace& rank,
                                                 const std::vector<std::uint64_t>& calls) {
  std::vector<std::uint64_t> lone;
  if (calls.empty()) return lone;
  const KernelLinks links(rank, calls);
  std::ranges::copy_if(calls, std::back_inserter(lone), [&](std::uint64_t id) { return !links.linked(id); });
  return lone;
}

namespace fs = std::filesystem;

constexpr const char* kPrefix = "shardscape";
// Texts that Chakra's generator and converters write: the version of the schema, and an attribute in which tools around
// PyTorch look for two versions, of their trace format and of Chakra.
constexpr const char* kVersion = "0.0.4";
constexpr const char* kSchemaAttribute = "schema";
constexpr const char* kSchema = "1.1.1-chakra.0.0.4";
constexpr std::size_t kReported = 20;
constexpr std::size_t kMostProblems = 200;  ///< after so many problems nothing more is read
constexpr std::int32_t kMostRanks = 1 << 20;

/// The parts of a file name "PREFIX.RANK.et".
struct TraceName {
  std::string prefix;
  std::int32_t rank = 0;
};

std::optional<TraceName> parse_name(const fs::path& file) {
  if (file.extension() != ".et") return std::nullopt;
  const std::string stem = file.stem().string();
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto rank = to_number<std::int32_t>(std::string_view(stem).substr(dot + 1));
  if (!rank || *rank < 0 || *rank >= kMostRanks) return std::nullopt;
  return TraceName{stem.substr(0, dot), *rank};
}

std::string name_of_node(const timeline::RankTrace& rank, std::uint64_t id) {
  const auto found = std::ranges::find(rank.nodes, id, &timeline::TraceNode::id);
  return found != rank.nodes.end() ? found->name : "";
}

class Loader {
 public:
  explicit Loader(const fs::path& folder) { loaded_.folder = folder; }

  tl::expected<LoadedTrace, std::string> load() {
    if (find_files()) {
      read_groups();
      if (problems_.empty()) read_ranks();
      for (const GroupUse& use : unknown_groups_) check_group(use);
    }
    if (!problems_.empty()) return tl::unexpected(text());
    loaded_.trace.groups = groups_.take();
    return std::move(loaded_);
  }

 private:
  /// The first node that names a group which nothing has defined by then.
  struct GroupUse {
    std::int32_t group = 0;
    const fs::path& file;
    std::string place;
  };

  void report(const fs::path& where, const std::string& what) {
    if (problems_.size() < kReported) {
      problems_.push_back(where.string() + ": " + what);
    } else {
      ++unreported_;
    }
  }
  /// Whether there are so many problems that the rest of the folder is not read.
  [[nodiscard]] bool enough() const { return problems_.size() + unreported_ >= kMostProblems; }
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (const std::string& problem : problems_) lines += message_line(problem) + "\n";
    if (unreported_ > 0)
      lines += fmt::format("{}: and {} more problems{}\n", loaded_.folder.string(), unreported_,
                           enough() ? ", or more still: the rest was not read" : "");
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
          report(path, fmt::format("is a second trace of rank {}", name->rank));
        }
      } else if (path.extension() == ".et") {
        report(path, "is no trace of this run; traces are called PREFIX.RANK.et, RANK from 0 on");
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
        report(loaded_.folder, fmt::format("has a trace of rank {}, but none of rank {}", rank, expected));
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
    const auto content = input::read_file(file, input::kMostCaseBytes, "a file of process groups");
    if (!content) return report(file, content.error());
    const auto document = network_case::parse_json(*content);
    if (!document) {
      const network_case::SyntaxError& error = document.error();
      return report(fmt::format("{}:{}:{}", file.string(), error.line, error.column), error.message);
    }
    if (!document->is_object()) return report(file, "is no object from names of groups to lists of ranks");
    for (const auto& [name, list] : document->items()) {
      if (enough()) return;
      read_group(name, list);
    }
  }

  void read_group(const std::string& name, const nlohmann::json& list) {
    std::vector<std::int32_t> ranks;
    if (!list.is_array() || list.empty()) {
      return report(loaded_.groups_file, "group '" + name + "' is no list of ranks");
    }
    for (const nlohmann::json& rank : list) {
      const bool good = rank.is_number_integer() && rank >= 0 && rank < kMostRanks;
      if (!good)
        return report(loaded_.groups_file, "group '" + name + "': " + json_text(rank) + " is no rank");
      ranks.push_back(rank.get<std::int32_t>());
    }
    groups_.define(name, std::move(ranks));
  }

  void check_group(const GroupUse& use) {
    if (groups_.defined(use.group)) return;
    if (problems_.size() >= kReported) {
      ++unreported_;
      return;
    }
    const std::string& name = groups_.name(use.group);
    const std::vector<std::string> names = groups_.names();
    std::string what = use.place + ": names process group '" + name + "', ";
    if (!loaded_.groups_file.empty()) {
      what +=
          "which " + loaded_.groups_file.filename().string() + " does not have" + did_you_mean(name, names);
    } else if (!names.empty()) {
      what += "which no node defines" + did_you_mean(name, names);
    } else {
      what += fmt::format("and neither a {} beside the traces nor a node says who is in it", kGroupsFile);
    }
    report(use.file, what);
  }

  void read_ranks() {
    for (std::size_t r = 0; r < loaded_.files.size() && !enough(); ++r) {
      read_rank(static_cast<std::int32_t>(r), loaded_.files[r]);
    }
  }

  void read_rank(std::int32_t rank, const fs::path& file) {
    RecordReader reader(file);
    loaded_.trace.ranks.emplace_back();
    ChakraProtoMsg::GlobalMetadata metadata;
    RecordReader::Outcome outcome = reader.next(metadata);
    if (outcome == RecordReader::Outcome::end) return report(file, fmt::format("is empty (rank {})", rank));
    ChakraProtoMsg::Node node;
    const GroupLookup lookup = [&](const GroupName& name) {
      const std::int32_t group = groups_.find(name);
      if (!groups_.defined(group) && ++uses_[group] <= kReported) {
        unknown_groups_.push_back({group, file, place(node.id(), node.name(), rank)});
      }
      return group;
    };
    std::vector<std::uint64_t> calls;
    std::size_t nodes = 0;
    for (; outcome == RecordReader::Outcome::message; ++nodes) {
      if (enough()) return;
      outcome = reader.next(node);
      if (outcome != RecordReader::Outcome::message) break;
      const std::string groups = groups_.learn(node);
      if (!groups.empty()) report(file, place(node.id(), node.name(), rank) + ": " + groups);
      const auto decoded = decode(node, rank, lookup, loaded_.trace.ranks.back());
      if (!decoded) {
        report(file, place(node.id(), node.name(), rank) + ": " + decoded.error());
      } else if (communicates(node) && loaded_.trace.ranks.back().nodes.back().host) {
        calls.push_back(node.id());
      }
    }
    report_lone_calls(file, rank, calls);
    if (outcome == RecordReader::Outcome::broken) {
      report(file, fmt::format("{} (rank {}, after {} nodes)", reader.problem(), rank, nodes));
    }
  }

  void report_lone_calls(const fs::path& file, std::int32_t rank, const std::vector<std::uint64_t>& calls) {
    const timeline::RankTrace& trace = loaded_.trace.ranks.back();
    for (const std::uint64_t id : calls_without_kernels(trace, calls)) {
      if (problems_.size() >= kReported) {
        ++unreported_;
        continue;
      }
      report(file, place(id, name_of_node(trace, id), rank) +
                       ": is a collective of the host, and no kernel of the device depends on it; link the "
                       "host's trace with the device's before converting it");
    }
  }

 public:
  static std::string place(std::uint64_t id, const std::string& name, std::int32_t rank) {
    return fmt::format("node {}{} (rank {})", id, name.empty() ? "" : " '" + name + "'", rank);
  }

 private:
  LoadedTrace loaded_;
  ProcessGroups groups_;
  std::map<std::int32_t, std::size_t> uses_;  ///< by group not defined yet: nodes that name it
  std::vector<GroupUse> unknown_groups_;      ///< for each of those groups, the first node that names it
  std::vector<std::string> problems_;
  std::size_t unreported_ = 0;
};

void write_groups(const fs::path& file, const std::vector<timeline::ProcessGroup>& groups) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].ranks.empty()) document[group_number(i)] = groups[i].ranks;
  }
  std::ofstream out(file);
  out << json_text(document) << '\n';
  out.close();
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace

tl::expected<LoadedTrace, std::string> load(const fs::path& folder) { return Loader(folder).load(); }

std::string located(const timeline::TraceProblems& problems, const LoadedTrace& loaded) {
  std::string lines;
  for (const timeline::TraceProblem& problem : problems) {
    std::string line;
    if (problem.rank < 0) {
      line += (loaded.groups_file.empty() ? loaded.folder : loaded.groups_file).string();
    } else {
      const auto rank = static_cast<std::size_t>(problem.rank);
      line += loaded.files[rank].string() + ": ";
      line += problem.node
                  ? Loader::place(*problem.node, name_of_node(loaded.trace.ranks[rank], *problem.node),
                                  problem.rank)
                  : fmt::format("rank {}", problem.rank);
    }
    lines += message_line(line + ": " + problem.message) + "\n";
  }
  return lines;
}

TraceWriter::TraceWriter(fs::path folder, const std::vector<timeline::ProcessGroup>& groups,
                         std::size_t dimensions)
    : folder_(std::move(folder)), groups_(groups), dimensions_(dimensions) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw std::runtime_error(folder_.string() + ": cannot be made: " + error.message());
  write_groups(folder_ / kGroupsFile, groups_);
}

void TraceWriter::write_rank(std::int32_t rank, const timeline::RankTrace& trace) {
  const fs::path file = folder_ / fmt::format("{}.{}.et", kPrefix, rank);
  RecordWriter writer(file);
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kVersion);
  ChakraProtoMsg::AttributeProto& schema = *metadata.add_attr();
  schema.set_name(kSchemaAttribute);
  schema.set_string_val(kSchema);
  writer.add(metadata);
  for (const timeline::TraceNode& node : trace.nodes) {
    writer.add(encode(node, trace, rank, groups_, dimensions_));
  }
  if (!writer.close()) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace shardscape::chakra
