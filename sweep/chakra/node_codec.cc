// Translates nodes of a trace into Chakra messages and back: writes the attributes that other simulators ask for, and
// reads numbers of any type within bounds, collecting problems as text.
#include "sweep/chakra/node_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/range.h"

namespace shardscape::chakra {

namespace {

using ChakraProtoMsg::AttributeProto;
using ChakraProtoMsg::Node;
using timeline::CollectiveKind;
using timeline::NodeKind;
using timeline::TraceNode;

constexpr double kNanoseconds = 1e9;
constexpr double kMicroseconds = 1e6;
/// Whole numbers up to this one (2^53) are exact as doubles.
constexpr double kMostBytes = 9007199254740992.0;
constexpr double kMostOperations = 1e30;
/// Longest duration that is accepted, in seconds: some 30 years, and no step takes longer.
constexpr double kLongest = 1e9;

AttributeProto& add_attribute(Node& node, const char* name) {
  AttributeProto& attribute = *node.add_attr();
  attribute.set_name(name);
  return attribute;
}

constexpr std::pair<NodeKind, ChakraProtoMsg::NodeType> kTypes[] = {
    {NodeKind::metadata, ChakraProtoMsg::METADATA_NODE},
    {NodeKind::memory_load, ChakraProtoMsg::MEM_LOAD_NODE},
    {NodeKind::memory_store, ChakraProtoMsg::MEM_STORE_NODE},
    {NodeKind::compute, ChakraProtoMsg::COMP_NODE},
    {NodeKind::send, ChakraProtoMsg::COMM_SEND_NODE},
    {NodeKind::receive, ChakraProtoMsg::COMM_RECV_NODE},
    {NodeKind::collective, ChakraProtoMsg::COMM_COLL_NODE}};

ChakraProtoMsg::NodeType type_of(NodeKind kind) {
  return std::ranges::find(kTypes, kind, [](const auto& row) { return row.first; })->second;
}

std::optional<NodeKind> kind_of(ChakraProtoMsg::NodeType type) {
  const auto found = std::ranges::find(kTypes, type, [](const auto& row) { return row.second; });
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->first);
}

std::int64_t whole(double value) { return std::llround(value); }
std::int64_t positive(double value) { return std::max<std::int64_t>(1, whole(value)); }

void encode_compute(const TraceNode& node, Node& message) {
  if (node.seconds > 0) {
    message.set_duration_micros(static_cast<std::uint64_t>(positive(node.seconds * kMicroseconds)));
  }
  add_attribute(message, "is_cpu_op").set_bool_val(node.host);
  add_attribute(message, "num_ops").set_int64_val(positive(node.operations));
  add_attribute(message, "tensor_size")
      .set_uint64_val(static_cast<std::uint64_t>(positive(node.tensor_bytes)));
  add_attribute(message, kDurationAttribute).set_double_val(node.seconds * kNanoseconds);
}

void encode_message(const TraceNode& node, std::int32_t own_rank, Node& message) {
  const bool sends = node.kind == NodeKind::send;
  add_attribute(message, "is_cpu_op").set_bool_val(false);
  add_attribute(message, "comm_src").set_int32_val(sends ? own_rank : node.peer);
  add_attribute(message, "comm_dst").set_int32_val(sends ? node.peer : own_rank);
  add_attribute(message, "comm_tag").set_int32_val(node.tag);
  add_attribute(message, "comm_size").set_int64_val(whole(node.bytes));
  if (node.channel != 0) add_attribute(message, kChannelAttribute).set_int32_val(node.channel);
}

void encode_collective(const TraceNode& node, const timeline::ProcessGroup& group, std::size_t dimensions,
                       Node& message) {
  add_attribute(message, "is_cpu_op").set_bool_val(false);
  add_attribute(message, "comm_type").set_int64_val(static_cast<std::int64_t>(node.collective));
  add_attribute(message, "comm_size").set_int64_val(whole(node.bytes));
  auto& involved = *add_attribute(message, "involved_dim").mutable_bool_list();
  for (std::size_t d = 0; d < dimensions; ++d) {
    involved.add_values(group.dimensions.empty() || group.dimensions[d]);
  }
  if (group.ranks.empty()) return;
  add_attribute(message, "pg_name").set_string_val(group_number(static_cast<std::size_t>(node.group)));
  add_attribute(message, kGroupAttribute).set_string_val(group.name);
}

enum class Needed : std::uint8_t { no, yes };

/// Looks up the attributes of a message by name, and collects the problems met while doing so.
class Attributes {
 public:
  explicit Attributes(const Node& message) : message_(message) {}

  [[nodiscard]] const AttributeProto* find(const char* name) const { return find_attribute(message_, name); }

  /// Reads a number of any type within [least, most]. Empty where it is missing, which is a problem where it is
  /// `needed`, and, with a problem noted, where it is no number or lies outside.
  std::optional<double> number(const char* name, double least, double most, Needed needed = Needed::no) {
    const AttributeProto* const attribute = find(name);
    if (attribute == nullptr) {
      if (needed == Needed::yes) problem(fmt::format("has no attribute {}", name));
      return std::nullopt;
    }
    const std::optional<double> value = number_of(*attribute);
    if (!value) {
      problem(fmt::format("{} is no number", name));
    } else if (!(*value >= least && *value <= most)) {
      problem(fmt::format("{} {}", name, Range{least, most}.violated_by(*value)));
      return std::nullopt;
    }
    return value;
  }

  bool flag(const char* name) {
    const AttributeProto* const attribute = find(name);
    if (attribute == nullptr) return false;
    if (attribute->value_case() == AttributeProto::kBoolVal) return attribute->bool_val();
    return number(name, 0, 1).value_or(0) != 0;
  }

  void problem(const std::string& text) { problems_ += (problems_.empty() ? "" : "; ") + text; }
  [[nodiscard]] const std::string& problems() const { return problems_; }

 private:
  static std::optional<double> number_of(const AttributeProto& a) {
    switch (a.value_case()) {
      case AttributeProto::kDoubleVal:
        return a.double_val();
      case AttributeProto::kFloatVal:
        return a.float_val();
      case AttributeProto::kInt32Val:
        return a.int32_val();
      case AttributeProto::kInt64Val:
        return static_cast<double>(a.int64_val());
      case AttributeProto::kUint32Val:
        return a.uint32_val();
      case AttributeProto::kUint64Val:
        return static_cast<double>(a.uint64_val());
      case AttributeProto::kSint32Val:
        return a.sint32_val();
      case AttributeProto::kSint64Val:
        return static_cast<double>(a.sint64_val());
      case AttributeProto::kFixed32Val:
        return a.fixed32_val();
      case AttributeProto::kFixed64Val:
        return static_cast<double>(a.fixed64_val());
      case AttributeProto::kSfixed32Val:
        return a.sfixed32_val();
      case AttributeProto::kSfixed64Val:
        return static_cast<double>(a.sfixed64_val());
      default:
        return std::nullopt;
    }
  }

  const Node& message_;
  std::string problems_;
};

void decode_duration(const Node& message, Attributes& attributes, TraceNode& node) {
  node.seconds = static_cast<double>(message.duration_micros()) / kMicroseconds;
  const Range range{0, kLongest, "s"};
  if (!range.holds(node.seconds)) attributes.problem("duration_micros " + range.violated_by(node.seconds));
  const auto exact = attributes.number(kDurationAttribute, 0, kLongest * kNanoseconds);
  if (exact) node.seconds = *exact / kNanoseconds;
}

void decode_message(Attributes& attributes, std::int32_t own_rank, TraceNode& node) {
  constexpr double kRanks = std::numeric_limits<std::int32_t>::max();
  const bool sends = node.kind == NodeKind::send;
  const auto source = attributes.number("comm_src", 0, kRanks, sends ? Needed::no : Needed::yes);
  const auto destination = attributes.number("comm_dst", 0, kRanks, sends ? Needed::yes : Needed::no);
  const auto own = sends ? source : destination, other = sends ? destination : source;
  if (own && *own != own_rank) {
    attributes.problem(fmt::format("{} is rank {}, but this is the trace of rank {}",
                                   sends ? "comm_src" : "comm_dst", static_cast<std::int32_t>(*own),
                                   own_rank));
  }
  node.peer = static_cast<std::int32_t>(other.value_or(0));
  node.tag = static_cast<std::int32_t>(
      attributes.number("comm_tag", std::numeric_limits<std::int32_t>::min(), kRanks).value_or(0));
  node.bytes = attributes.number("comm_size", 0, kMostBytes, Needed::yes).value_or(0);
  node.channel = static_cast<std::int32_t>(attributes.number(kChannelAttribute, 0, kRanks).value_or(0));
}

void decode_collective(Attributes& attributes, const GroupLookup& lookup, TraceNode& node) {
  const auto type = attributes.number("comm_type", 0, 9, Needed::yes);
  node.collective = static_cast<CollectiveKind>(type.value_or(0));
  const bool barrier = type && node.collective == CollectiveKind::barrier;
  const auto bytes = attributes.number("comm_size", 0, kMostBytes, barrier ? Needed::no : Needed::yes);
  node.bytes = bytes.value_or(0);
  GroupName name;
  if (const AttributeProto* const group = attributes.find("pg_name")) {
    if (group->value_case() != AttributeProto::kStringVal) attributes.problem("pg_name is no string");
    name.name = group->string_val();
  }
  const AttributeProto* const involved = attributes.find("involved_dim");
  if (name.name.empty() && involved != nullptr) {
    if (involved->value_case() != AttributeProto::kBoolList)
      attributes.problem("involved_dim is no list of bool");
    for (const bool dimension : involved->bool_list().values()) name.dimensions.push_back(dimension);
    bool any = name.dimensions.empty();
    for (const bool dimension : name.dimensions) any = any || dimension;
    if (!any) attributes.problem("involved_dim names no dimension");
  }
  node.group = lookup(name);
}

/// Decodes the attributes that belong to `kind`, the kind that the type of the node states.
void decode_kind(const Node& message, NodeKind kind, std::int32_t own_rank, const GroupLookup& group,
                 Attributes& attributes, TraceNode& node) {
  const bool host = attributes.flag("is_cpu_op");
  node.kind = host && communicates(message) ? NodeKind::compute : kind;
  switch (node.kind) {
    case NodeKind::compute:
      node.host = host;
      node.operations = attributes.number("num_ops", 0, kMostOperations).value_or(0);
      [[fallthrough]];
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      node.tensor_bytes = attributes.number("tensor_size", 0, kMostBytes).value_or(0);
      decode_duration(message, attributes, node);
      break;
    case NodeKind::send:
    case NodeKind::receive:
      decode_message(attributes, own_rank, node);
      break;
    case NodeKind::collective:
      decode_collective(attributes, group, node);
      break;
    case NodeKind::metadata:
      break;
  }
  const bool memory = node.kind == NodeKind::memory_load || node.kind == NodeKind::memory_store;
  if (memory && node.seconds == 0 && attributes.find("tensor_size") == nullptr) {
    attributes.problem(
        "says neither how much is moved (tensor_size) nor how long it takes (duration_micros)");
  }
}

}  // namespace

std::string group_number(std::size_t index) { return std::to_string(index + 1); }

const AttributeProto* find_attribute(const Node& message, const char* name) {
  const auto& attributes = message.attr();
  const auto found = std::ranges::find(attributes, name, &AttributeProto::name);
  return found == attributes.end() ? nullptr : &*found;
}

bool communicates(const Node& message) {
  return message.type() == ChakraProtoMsg::COMM_COLL_NODE ||
         message.type() == ChakraProtoMsg::COMM_SEND_NODE || message.type() == ChakraProtoMsg::COMM_RECV_NODE;
}

Node encode(const TraceNode& node, const timeline::RankTrace& rank, std::int32_t own_rank,
            const std::vector<timeline::ProcessGroup>& groups, std::size_t dimensions) {
  Node message;
  message.set_id(node.id);
  message.set_type(type_of(node.kind));
  message.set_name(ChakraProtoMsg::NodeType_Name(message.type()) + (node.name.empty() ? "" : " ") +
                   node.name);
  for (const std::uint64_t id : rank.dependencies_of(node)) message.add_data_deps(id);
  switch (node.kind) {
    case NodeKind::compute:
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      encode_compute(node, message);
      break;
    case NodeKind::send:
    case NodeKind::receive:
      encode_message(node, own_rank, message);
      break;
    case NodeKind::collective:
      encode_collective(node, groups[static_cast<std::size_t>(node.group)], dimensions, message);
      break;
    case NodeKind::metadata:
      break;
  }
  return message;
}

tl::expected<void, std::string> decode(const Node& message, std::int32_t own_rank, const GroupLookup& group,
                                       timeline::RankTrace& rank) {
  const std::optional<NodeKind> kind = kind_of(message.type());
  if (!kind) {
    return tl::unexpected(
        fmt::format("is of unknown type {}; known are 1 metadata, 2 memory load, 3 memory store, 4 compute, "
                    "5 send, 6 receive, 7 collective",
                    static_cast<int>(message.type())));
  }
  Attributes attributes(message);
  TraceNode node;
  node.name = message.name();
  decode_kind(message, *kind, own_rank, group, attributes, node);
  if (!attributes.problems().empty()) return tl::unexpected(attributes.problems());
  std::vector<std::uint64_t> dependencies(message.ctrl_deps().begin(), message.ctrl_deps().end());
  dependencies.insert(dependencies.end(), message.data_deps().begin(), message.data_deps().end());
  rank.add(std::move(node), dependencies);
  rank.nodes.back().id = message.id();
  return {};
}

}  // namespace shardscape::chakra
