// A YAML document as a plain value: every key and scalar with its place, duplicate keys kept.
//
// The tree is built from yaml-cpp's events instead of its nodes, because a strict reader needs what
// YAML::Node forgets (the places of keys, duplicates, quotes) and a what-if needs copies that don't share
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/yaml/diagnostics.h"

namespace shardscape::yaml {

struct Entry;

struct Node {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string text;            ///< text of a scalar
  bool quoted = false;         ///< the scalar was written in quotes: text, never a number
  bool flow = false;           ///< write the list or map on one line
  std::vector<Node> items;     ///< elements of a list
  std::vector<Entry> entries;  ///< entries of a map, in file order
  Location where;

  // Defined in node.cc: a map holds entries, which hold nodes.
  Node();
  Node(const Node&);
  Node(Node&&) noexcept;
  Node& operator=(const Node&);
  Node& operator=(Node&&) noexcept;
  ~Node();

  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] bool is_map() const { return kind == Kind::map; }

  /// The first value with a key in a map, or null.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
  /// Sets or appends a key; makes a null node a map.
  void set(std::string_view key, Node value);
  void erase(std::string_view key);

  static Node scalar(std::string text);
  static Node list(std::vector<Node> items = {});
  static Node map();
};

struct Entry {
  std::string key;
  Location key_where;
  Node value;
};

/// The word for a node in messages: "a list", "a map", "text", "nothing".
std::string_view kind_name(const Node& node);

/// Parses one document. Syntax errors, aliases to nowhere, keys that are no scalars, tags, several documents
/// and an empty text are reported; nothing is returned then. `source` names the text in locations.
std::optional<Node> parse(const std::string& text, const std::string& source, Diagnostics& diagnostics);

/// Gives every node and key of the tree the same place.
void relocate(Node& node, const Location& where);

/// The tree as YAML text in block style (maps and lists marked `flow` on one line). parse() gives an equal tree, except
/// for places.
std::string emit(const Node& node);

}  // namespace shardscape::yaml
