// The tree of a YAML document: look-up and change of keys.
#include "sweep/yaml/node.h"

#include <algorithm>
#include <utility>

#include "engine/base/enum_array.h"

namespace shardscape::yaml {

Node::Node() = default;
Node::Node(const Node&) = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(const Node&) = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

const Node* Node::find(std::string_view key) const {
  const auto it = std::ranges::find(entries, key, &Entry::key);
  return it == entries.end() ? nullptr : &it->value;
}

Node* Node::find(std::string_view key) {
  const auto it = std::ranges::find(entries, key, &Entry::key);
  return it == entries.end() ? nullptr : &it->value;
}

void Node::set(std::string_view key, Node value) {
  if (kind == Kind::null) kind = Kind::map;
  const auto it = std::ranges::find(entries, key, &Entry::key);
  if (it == entries.end()) {
    const Location place = value.where;
    entries.push_back({std::string(key), place, std::move(value)});
  } else {
    it->key_where = value.where;
    it->value = std::move(value);
  }
}

void Node::erase(std::string_view key) {
  std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
}

Node Node::scalar(std::string text) {
  Node node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  return node;
}

Node Node::list(std::vector<Node> items) {
  Node node;
  node.kind = Kind::list;
  node.items = std::move(items);
  return node;
}

Node Node::map() {
  Node node;
  node.kind = Kind::map;
  return node;
}

std::string_view kind_name(const Node& node) {
  constexpr EnumArray<Node::Kind, std::string_view> kNames = {{"nothing", "text", "a list", "a map"}};
  return kNames[node.kind];
}

void relocate(Node& node, const Location& where) {
  node.where = where;
  for (Node& item : node.items) relocate(item, where);
  for (Entry& entry : node.entries) {
    entry.key_where = where;
    relocate(entry.value, where);
  }
}

}  // namespace shardscape::yaml
