// The tree of a YAML document: look-up and change of keys, and writing it as text.
#include "sweep/yaml/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/enum_array.h"
#include "engine/base/words.h"

namespace shardscape::yaml {

namespace {

/// Whether a character has no meaning to YAML anywhere in a plain scalar.
bool harmless(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == '+' || c == '-' ||
         c == ' ' || c == '(' || c == ')';
}

bool plain(const std::string& text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return false;
  if (text == "null" || text == "Null" || text == "NULL" || text == "---" || text == "...") return false;
  const bool dash = text.front() == '-' && (text.size() == 1 || text[1] == ' ' || text[1] == '-');
  if (dash || text.starts_with("...")) return false;
  for (const char c : text) {
    if (!harmless(c)) return false;
  }
  return true;
}

std::string quote(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string plain_or_quoted(const std::string& text) { return plain(text) ? text : quote(text); }

std::string flow_text(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return node.quoted ? quote(node.text) : plain_or_quoted(node.text);
    case Node::Kind::list:
      return fmt::format("[{}]", joined(node.items, ", ", flow_text));
    case Node::Kind::map:
      return fmt::format("{{{}}}", joined(node.entries, ", ", [](const Entry& entry) {
                           return fmt::format("{}: {}", plain_or_quoted(entry.key), flow_text(entry.value));
                         }));
  }
  return {};
}

bool on_one_line(const Node& node) { return node.flow || (node.items.empty() && node.entries.empty()); }

/// Appends `node` after "key:" or "-": on the same line where it fits, else as an indented block.
void append_block(const Node& node, std::size_t indent, std::string& out);

void append_map(const Node& node, std::size_t indent, std::string& out) {
  for (const Entry& entry : node.entries) {
    out += std::string(indent, ' ') + plain_or_quoted(entry.key) + ':';
    append_block(entry.value, indent + 2, out);
  }
}

void append_block(const Node& node, std::size_t indent, std::string& out) {
  if (on_one_line(node)) {
    out += ' ' + flow_text(node) + '\n';
  } else if (node.is_map()) {
    out += '\n';
    append_map(node, indent, out);
  } else {
    out += '\n';
    for (const Node& item : node.items) {
      out += std::string(indent, ' ') + '-';
      if (item.is_map() && !on_one_line(item)) {
        std::string entries;
        append_map(item, indent + 2, entries);
        out += ' ' + entries.substr(indent + 2);  // the first one stands behind the dash
      } else {
        append_block(item, indent + 2, out);
      }
    }
  }
}

}  // namespace

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

std::string emit(const Node& node) {
  std::string out;
  if (node.is_map() && !on_one_line(node)) {
    append_map(node, 0, out);
  } else if (node.is_list() && !on_one_line(node)) {
    append_block(node, 0, out);
    out.erase(0, 1);
  } else {
    out = flow_text(node) + '\n';
  }
  return out;
}

}  // namespace shardscape::yaml
