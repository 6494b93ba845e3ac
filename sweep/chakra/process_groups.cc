// Gathers the process groups of a trace by name, from the JSON file and from nodes that define groups, and hands out
// indices for groups that may be defined later.
#include "sweep/chakra/process_groups.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sweep/network_case/json_document.h"

namespace shardscape::chakra {

namespace {

using ChakraProtoMsg::AttributeProto;

constexpr const char* kWorld = "0";
constexpr const char* kObserverNode = "process_group:init";

/// Reads the values of a list of integers of any type. Empty where it is no such list, or holds a number that is no
/// rank.
std::optional<std::vector<std::int32_t>> ranks_of(const AttributeProto& attribute) {
  std::vector<std::int32_t> ranks;
  const auto take = [&](const auto& list) {
    for (const auto value : list.values()) {
      const bool good = value >= 0 && static_cast<std::uint64_t>(value) <= std::numeric_limits<int>::max();
      if (!good) return false;
      ranks.push_back(static_cast<std::int32_t>(value));
    }
    return true;
  };
  bool good = false;
  switch (attribute.value_case()) {
    case AttributeProto::kInt32List:
      good = take(attribute.int32_list());
      break;
    case AttributeProto::kInt64List:
      good = take(attribute.int64_list());
      break;
    case AttributeProto::kUint32List:
      good = take(attribute.uint32_list());
      break;
    case AttributeProto::kUint64List:
      good = take(attribute.uint64_list());
      break;
    default:
      break;
  }
  return good ? std::optional(std::move(ranks)) : std::nullopt;
}

std::optional<std::vector<std::int32_t>> ranks_of(const nlohmann::json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::int32_t> ranks;
  for (const nlohmann::json& rank : list) {
    const bool good = rank.is_number_integer() && rank >= 0 && rank <= std::numeric_limits<int>::max();
    if (!good) return std::nullopt;
    ranks.push_back(rank.get<std::int32_t>());
  }
  return ranks;
}

/// Finds the innermost text that looks like a JSON list of objects: converters leave the list as text within a list,
/// with or without escaped quotes.
std::optional<std::string> list_of_objects(const std::string& text) {
  const std::size_t begin = text.find("[{"), end = text.rfind("}]");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  std::string list = text.substr(begin, end + 2 - begin);
  for (std::size_t at = list.find("\\\""); at != std::string::npos; at = list.find("\\\"", at)) {
    list.erase(at, 1);
  }
  return list;
}

}  // namespace

ProcessGroups::Entry& ProcessGroups::entry(const GroupName& name) {
  return entries_[static_cast<std::size_t>(find(name))];
}

std::int32_t ProcessGroups::find(const GroupName& name) {
  const auto [found, fresh] = indices_.try_emplace(name, static_cast<std::int32_t>(entries_.size()));
  if (fresh) {
    const bool assumed = name.name.empty() || name.name == kWorld;
    entries_.push_back({{name.name, {}, name.dimensions}, assumed ? Source::assumed : Source::none});
  }
  return found->second;
}

void ProcessGroups::define(const std::string& name, std::vector<std::int32_t> ranks) {
  Entry& known = entry({name, {}});
  known.group.ranks = std::move(ranks);
  known.source = Source::file;
}

std::string ProcessGroups::learn(const std::string& name, std::vector<std::int32_t> ranks) {
  Entry& known = entry({name, {}});
  if (known.source == Source::file) return "";
  if (known.source == Source::node && known.group.ranks != ranks) {
    return "gives process group '" + name + "' other ranks than a node before it";
  }
  known.group.ranks = std::move(ranks);
  known.source = Source::node;
  return "";
}

std::string ProcessGroups::learn(const ChakraProtoMsg::Node& node) {
  if (node.name().find(kObserverNode) != std::string::npos) return learn_list(node.inputs().values());
  if (node.type() != ChakraProtoMsg::METADATA_NODE) return "";
  const AttributeProto* const name = find_attribute(node, "pg_name");
  const AttributeProto* const list = find_attribute(node, "ranks");
  if (name == nullptr || list == nullptr) return "";
  auto ranks = ranks_of(*list);
  if (!ranks || ranks->empty()) return "ranks is no list of ranks";
  if (name->value_case() != AttributeProto::kStringVal || name->string_val().empty())
    return "pg_name is no string";
  return learn(name->string_val(), *std::move(ranks));
}

std::string ProcessGroups::learn_list(const std::string& text) {
  const auto list = list_of_objects(text);
  const auto document = list ? network_case::parse_json(*list) : tl::unexpected(network_case::SyntaxError{});
  if (!document)
    return "should list process groups in its input values, as [{\"pg_name\": .., \"ranks\": ..}]";
  std::string problems;
  for (const nlohmann::json& group : *document) {
    const bool complete = group.is_object() && group.contains("pg_name") && group.at("pg_name").is_string() &&
                          group.at("pg_name") != "" && group.contains("ranks");
    auto ranks = complete ? ranks_of(group.at("ranks")) : std::nullopt;
    if (!ranks) return "lists a process group without a string pg_name and a list of ranks";
    const std::string problem = learn(group.at("pg_name").get<std::string>(), *std::move(ranks));
    if (!problem.empty()) problems += (problems.empty() ? "" : "; ") + problem;
  }
  return problems;
}

std::vector<std::string> ProcessGroups::names() const {
  std::vector<std::string> names;
  for (const Entry& known : entries_) {
    if (known.source == Source::file || known.source == Source::node) names.push_back(known.group.name);
  }
  return names;
}

std::vector<timeline::ProcessGroup> ProcessGroups::take() {
  std::vector<timeline::ProcessGroup> groups;
  for (Entry& known : entries_) groups.push_back(std::move(known.group));
  return groups;
}

}  // namespace shardscape::chakra
