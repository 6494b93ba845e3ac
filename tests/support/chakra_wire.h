// Reads Chakra execution traces by the published schema alone (MLCommons Chakra,
// schema/protobuf/et_def.proto) and the wire format of protobuf: nothing of the product, nothing that was
// generated. Anything that the schema does not have, or has with another type, throws.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardscape::chakra_wire {

/// Bytes, taken from the front.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("a varint of more than ten bytes");
  }
  double fixed64() {
    std::uint64_t bits = 0;
    std::memcpy(&bits, take(8).data(), 8);
    return std::bit_cast<double>(bits);
  }
  std::string_view block() { return take(varint()); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) throw std::runtime_error("cut off");
    const std::string_view front = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return front;
  }
  std::string_view bytes_;
};

/// Which member of AttributeProto's oneof is set: its field number in the schema.
enum class Held : std::uint8_t {
  nothing = 0,
  double_val = 3,
  int32_val = 7,
  int64_val = 9,
  uint64_val = 13,
  bool_val = 27,
  bool_list = 28,
  string_val = 29
};

struct Attribute {
  Held held = Held::nothing;
  double number = 0;  ///< value of any number or bool
  std::string text;
};

struct Node {
  std::uint64_t id = 0, type = 0, duration_micros = 0;
  std::string name;
  std::vector<std::uint64_t> dependencies;
  std::map<std::string, Attribute> attributes;

  /// As Chakra's C++ feeder reads: 0 where the attribute is missing or holds another type.
  [[nodiscard]] double as(Held held, const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found != attributes.end() && found->second.held == held ? found->second.number : 0;
  }
  [[nodiscard]] Held held(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found != attributes.end() ? found->second.held : Held::nothing;
  }
  [[nodiscard]] std::string text(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found != attributes.end() ? found->second.text : "";
  }
};

// Values of NodeType.
constexpr std::uint64_t kComputeNode = 4, kSendNode = 5, kReceiveNode = 6, kCollectiveNode = 7;

struct Trace {
  std::string version;
  std::map<std::string, Attribute> attributes;
  std::vector<Node> nodes;
};

inline std::pair<std::string, Attribute> read_attribute(std::string_view bytes) {
  std::pair<std::string, Attribute> result;
  for (Wire in(bytes); !in.empty();) {
    const std::uint64_t key = in.varint(), field = key >> 3, wire_type = key & 7;
    Attribute& value = result.second;
    if (field == 1 && wire_type == 2) {
      result.first = in.block();
      continue;
    }
    value.held = static_cast<Held>(field);
    switch (value.held) {
      case Held::double_val:
        if (wire_type != 1) throw std::runtime_error("a double that is none");
        value.number = in.fixed64();
        break;
      case Held::int32_val:
      case Held::int64_val:
        if (wire_type != 0) throw std::runtime_error("an integer that is none");
        value.number = static_cast<double>(static_cast<std::int64_t>(in.varint()));
        break;
      case Held::uint64_val:
      case Held::bool_val:
        if (wire_type != 0) throw std::runtime_error("an integer that is none");
        value.number = static_cast<double>(in.varint());
        break;
      case Held::bool_list:
      case Held::string_val:
        if (wire_type != 2) throw std::runtime_error("a string or list that is none");
        value.text = in.block();
        break;
      default:
        throw std::runtime_error("AttributeProto: field " + std::to_string(field));
    }
  }
  return result;
}

inline Node read_node(std::string_view bytes) {
  Node node;
  for (Wire in(bytes); !in.empty();) {
    const std::uint64_t key = in.varint(), field = key >> 3, wire_type = key & 7;
    const bool list = wire_type == 2;
    if (field == 1 && !list) {
      node.id = in.varint();
    } else if (field == 2 && list) {
      node.name = in.block();
    } else if (field == 3 && !list) {
      node.type = in.varint();
    } else if ((field == 4 || field == 5) && list) {  // packed
      for (Wire ids(in.block()); !ids.empty();) node.dependencies.push_back(ids.varint());
    } else if (field == 7 && !list) {
      node.duration_micros = in.varint();
    } else if (field == 10 && list) {
      if (!node.attributes.insert(read_attribute(in.block())).second)
        throw std::runtime_error("an attribute that a node has twice");
    } else {
      throw std::runtime_error("Node: field " + std::to_string(field));
    }
  }
  return node;
}

inline Trace read_trace(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (bytes.empty()) throw std::runtime_error(file + " is empty");
  Trace trace;
  Wire records(bytes);
  for (Wire metadata(records.block()); !metadata.empty();) {
    const std::uint64_t field = metadata.varint() >> 3;
    if (field == 1) {
      trace.version = metadata.block();
    } else if (field == 2) {
      trace.attributes.insert(read_attribute(metadata.block()));
    } else {
      throw std::runtime_error("GlobalMetadata: field " + std::to_string(field));
    }
  }
  while (!records.empty()) trace.nodes.push_back(read_node(records.block()));
  return trace;
}

}  // namespace shardscape::chakra_wire
