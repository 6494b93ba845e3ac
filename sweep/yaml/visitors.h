// The three ways to walk a description (specs.cc): Reader (YAML -> spec), Writer (spec -> YAML) and Lister
// (the paths there are).
//
// A description names every key of a spec once, through these calls, which all visitors have:
//   required(key, value)              the key must be there; false where it could not be read
//   optional(key, value[, fallback])  else the value stays as it is, or becomes fallback()
//   maybe(key, optional)              a value that may be absent
//   either(key, other_key, value)     one of two keys; gives back whether it is the other one
//   ends(both, from, to, a, b, way)   `both: [a, b]`, or from and to where the way is one only
//   unused(key, why)                  a key that has no effect here
//   anything_else()                   keys not named so far can't be judged
//   fact(key, value)                  informational: optional, written only where stated, no what-if
//   remarks(key, values)              informational: a free map of key and text
//   words(key, texts)                 informational: a list of words, or one
//   if_any(key, value)                optional, written only where it is not 0
//   shared(key, total_key, count, value)  an amount per part, or the total over `count` parts
//   choices<Enum>(key, values, all)   a list of names of Enum, or `auto` for all of them
//   extents(size_key, shape_key, values)  a size or a list of them; the size may be `fill`
//   group(key, describe)              a required map with keys of its own
//   optional_group(key, describe)     the same, all of whose keys have defaults
//   maybe_group(key, optional, describe)  a map that may be absent, with its own struct
//   list(key, values, describe)       a list of maps
//   comment(key)                      free text or a list of it; read over
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/problems.h"
#include "engine/base/range.h"
#include "engine/base/words.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/value.h"

namespace shardscape::yaml {

/// The state of a read: the place of each field of the spec, and the fields that could not be read.
class ReadState {
 public:
  /// `prefix` goes before every path in messages (such as "model" for a model written inside a study).
  ReadState(const Location& root, std::string prefix, Diagnostics& diagnostics);

  void seen(const std::string& field, const Location& where);
  /// Reports a problem of a field and remembers that its value is invalid.
  void bad(const std::string& field, const Location& where, const std::string& message);
  /// Reports the problems of validate(), each at the place of its field, except those that follow from unreadable
  /// fields.
  void report(const Problems& problems);
  [[nodiscard]] bool failed() const { return failed_; }
  /// Paths that the spec has, for suggestions where a key stands in a wrong group.
  void set_paths(std::vector<std::string> (*paths)()) { paths_ = paths; }
  /// Of these the one with this last key; empty where there is none.
  [[nodiscard]] std::string elsewhere(std::string_view field) const;
  /// Whether further problems are only counted: see Diagnostics.
  [[nodiscard]] bool full() const { return diagnostics_.full(); }

 private:
  struct Place {
    Location where;
    bool bad = false;
  };
  [[nodiscard]] std::string shown(const std::string& field) const;
  [[nodiscard]] Location nearest(std::string field) const;
  [[nodiscard]] bool follows_from_bad(const std::string& field) const;

  Location root_;
  std::string prefix_;
  Diagnostics& diagnostics_;
  std::map<std::string, Place> places_;
  std::vector<std::string> (*paths_)() = nullptr;
  bool failed_ = false;
};

class Reader {
 public:
  /// Reads the keys of `node`; duplicate keys, and nodes other than maps, are reported at once. Both references must
  /// outlive the reader.
  Reader(const Node& node, std::string path, ReadState& state);

  template <class T>
  bool required(const char* key, T& value) {
    const Node* node = take_required(key);
    return node != nullptr && assign(key, *node, value);
  }
  template <class T>
  void optional(const char* key, T& value) {
    if (const Node* node = take(key)) assign(key, *node, value);
  }
  template <class T>
  void maybe(const char* key, std::optional<T>& value) {
    if (const Node* node = take(key)) assign(key, *node, value.emplace());
  }
  template <class T>
  bool either(const char* key, const char* other_key, T& value, bool other) {
    const Node* first = take(key);
    const Node* second = take(other_key);
    if (!exactly_one(key, first, other_key, second)) return other;
    assign(first != nullptr ? key : other_key, first != nullptr ? *first : *second, value);
    return second != nullptr;
  }
  void ends(const char* both_key, const char* from_key, const char* to_key, std::int64_t& a, std::int64_t& b,
            bool& one_way);
  void unused(const char* key, const std::string& why) {
    if (const Node* node = take(key)) bad(key, *node, why);
  }
  void anything_else() { strict_ = false; }
  template <class T, class F>
  void optional(const char* key, T& value, F&& fallback) {
    if (const Node* node = take(key)) {
      assign(key, *node, value);
    } else {
      value = fallback();
    }
  }
  template <class T>
  void fact(const char* key, T& value) {
    optional(key, value);
  }
  template <class T>
  void if_any(const char* key, T& value) {
    optional(key, value);
  }
  void remarks(const char* key, std::vector<std::pair<std::string, std::string>>& values);
  void words(const char* key, std::vector<std::string>& values);

  template <class T>
  void shared(const char* key, const char* total_key, std::int64_t count, T& value) {
    const auto [each, total] = take_one_of(key, total_key);
    if (each != nullptr) assign(key, *each, value);
    if (total == nullptr) return;
    assign(total_key, *total, value);
    state_.seen(at(key), total->where);
    if (count >= 1) value /= static_cast<double>(count);
  }
  void extents(const char* size_key, const char* shape_key, std::vector<std::int64_t>& values);

  template <class E>
  void choices(const char* key, std::vector<E>& values, const std::vector<E>& all) {
    const Node* node = take(key);
    if (node == nullptr) return;
    state_.seen(at(key), node->where);
    if (node->is_scalar() && node->text == "auto") {
      values = all;
    } else if (!node->is_list()) {
      bad(key, *node, "must be a list of names, or auto for all there are");
    } else {
      values.clear();
      for (const Node& item : node->items) {
        E value{};
        keep(key, item, parse_value<E>(item), value);
        values.push_back(value);
      }
    }
  }

  template <class F>
  void group(const char* key, F&& describe_group) {
    if (const Node* node = take_required(key)) descend(*node, at(key), describe_group);
  }
  template <class F>
  void optional_group(const char* key, F&& describe_group) {
    if (const Node* node = take(key)) descend(*node, at(key), describe_group);
  }
  template <class T, class F>
  void maybe_group(const char* key, std::optional<T>& value, F&& describe_group) {
    optional_group(key, [&](Reader& inner) { describe_group(inner, value.emplace()); });
  }
  template <class T, class F>
  void list(const char* key, std::vector<T>& values, F&& describe_item) {
    const Node* node = take_list(key);
    if (node == nullptr) return;
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      T& value = values.emplace_back();
      descend(node->items[i], fmt::format("{}[{}]", at(key), i),
              [&](Reader& item) { describe_item(item, value); });
    }
  }
  void comment(const char* key);
  /// Further names of a model: texts, or maps with a `name` and keys, which the caller checks.
  void checkpoints(const char* key);

  /// The node of a key that the caller reads itself, or null; the key then counts as known.
  const Node* take(const char* key);
  const Node* take_required(const char* key);
  /// Reads the node of a key that the caller has taken; false, with the problem reported, where its value is bad.
  template <class T>
  bool read(const char* key, const Node& node, T& value) {
    return assign(key, node, value);
  }
  /// Takes what was parsed of such a node, or reports why it could not be.
  template <class T>
  bool keep(const char* key, const Node& node, const Parsed<T>& parsed, T& value) {
    if (parsed) {
      state_.seen(at(key), node.where);
      value = *parsed;
    } else {
      bad(key, node, parsed.error());
    }
    return parsed.has_value();
  }
  /// Reads a value that must lie in a range; false where the key is absent or its value is bad.
  template <class T>
  bool within(const char* key, const Range& range, T& value) {
    const Node* node = take(key);
    return node != nullptr && read_within(key, *node, range, value);
  }
  template <class T>
  bool required_within(const char* key, const Range& range, T& value) {
    const Node* node = take_required(key);
    return node != nullptr && read_within(key, *node, range, value);
  }
  template <class T>
  bool read_within(const char* key, const Node& node, const Range& range, T& value) {
    if (!assign(key, node, value)) return false;
    Problems problems;
    require_range(problems, value, key, range);
    for (const Problem& problem : problems.list()) bad(key, node, problem.message);
    return problems.empty();
  }
  /// Reads an integer from `low` to `high`, into any integral type that holds both.
  template <class T>
  bool integer(const char* key, std::int64_t low, std::int64_t high, T& value) {
    const Node* node = take(key);
    std::int64_t number = 0;
    const bool good = node != nullptr && keep(key, *node, parse_integer_node(*node, low, high), number);
    if (good) value = static_cast<T>(number);
    return good;
  }
  /// Reports a problem of a key at a node.
  void bad(std::string_view key, const Node& node, const std::string& message) {
    failed_ = true;
    state_.bad(at(key), node.where, message);
  }
  /// Whether a key of this map could not be read.
  [[nodiscard]] bool failed() const { return failed_; }
  /// Reports the keys that no call asked for.
  void finish();

 private:
  [[nodiscard]] std::string at(std::string_view key) const;
  bool exactly_one(const char* key, const Node* first, const char* other_key, const Node* second);
  std::pair<const Node*, const Node*> take_one_of(const char* key, const char* total_key);
  const Node* take_list(const char* key);

  template <class T>
  bool assign(const char* key, const Node& node, T& value) {
    return keep(key, node, parse_value<T>(node), value);
  }
  template <class F>
  void descend(const Node& node, const std::string& path, F&& describe_group) {
    Reader inner(node, path, state_);
    describe_group(inner);
    inner.finish();
  }

  const Node& node_;
  std::string path_;
  ReadState& state_;
  std::vector<std::string> known_;
  bool strict_ = true, failed_ = false;
};

class Writer {
 public:
  explicit Writer(Node& map) : map_(map) { map_.kind = Node::Kind::map; }

  template <class T>
  bool required(const char* key, const T& value) {
    map_.set(key, make_scalar(value));
    return true;
  }
  template <class T>
  void optional(const char* key, const T& value) {
    required(key, value);
  }
  template <class T>
  void maybe(const char* key, const std::optional<T>& value) {
    if (value) required(key, *value);
  }
  template <class T>
  bool either(const char* key, const char* other_key, const T& value, bool other) {
    required(other ? other_key : key, value);
    return other;
  }
  void ends(const char* both_key, const char* from_key, const char* to_key, std::int64_t a, std::int64_t b,
            bool one_way);
  void unused(const char*, const std::string&) {}
  void anything_else() {}
  template <class T, class F>
  void optional(const char* key, const T& value, F&&) {
    required(key, value);
  }
  template <class T>
  void fact(const char* key, const T& value) {
    if (!(value == T{})) required(key, value);
  }
  template <class T>
  void if_any(const char* key, const T& value) {
    fact(key, value);
  }
  void remarks(const char* key, const std::vector<std::pair<std::string, std::string>>& values);
  void words(const char* key, const std::vector<std::string>& values);

  template <class T>
  void shared(const char* key, const char*, std::int64_t, const T& value) {
    required(key, value);
  }
  void extents(const char* size_key, const char* shape_key, const std::vector<std::int64_t>& values);

  template <class E>
  void choices(const char* key, const std::vector<E>& values, const std::vector<E>&) {
    map_.set(key, flow_list(values));
  }

  template <class F>
  void group(const char* key, F&& describe_group) {
    Node child = Node::map();
    Writer inner(child);
    describe_group(inner);
    map_.set(key, std::move(child));
  }
  template <class F>
  void optional_group(const char* key, F&& describe_group) {
    Node child = Node::map();
    Writer inner(child);
    describe_group(inner);
    if (!child.entries.empty()) map_.set(key, std::move(child));
  }
  template <class T, class F>
  void maybe_group(const char* key, std::optional<T>& value, F&& describe_group) {
    if (value) group(key, [&](Writer& inner) { describe_group(inner, *value); });
  }
  template <class T, class F>
  void list(const char* key, std::vector<T>& values, F&& describe_item) {
    Node items = Node::list();
    for (T& value : values) {
      Node child = Node::map();
      Writer inner(child);
      describe_item(inner, value);
      items.items.push_back(std::move(child));
    }
    map_.set(key, std::move(items));
  }
  void comment(const char*) {}
  void checkpoints(const char*) {}

 private:
  Node& map_;
};

/// A value of a spec at one path, as what-if axes change it.
struct Leaf {
  enum class Type : std::uint8_t { text, flag, integer, number, quantity, choice, list, informational };
  std::string path;
  Type type = Type::number;
  Dimension dimension = Dimension::time;  ///< dimension of a quantity
  std::vector<std::string> choices;       ///< values of a flag or a choice, in the order of their codes
  std::string replaces;  ///< another key that sets the same part (total rather than per part, or reverse)
  /// Range of an integer that can be read; the spec's own validate() says what makes sense. Values and codes are stored
  /// as doubles.
  std::int64_t low = -(std::int64_t{1} << 53), high = std::int64_t{1} << 53;
};

class Lister {
 public:
  Lister(std::string prefix, std::vector<Leaf>& leaves) : prefix_(std::move(prefix)), leaves_(leaves) {}

  template <class T>
  void required(const char* key, const T&) {
    leaves_.push_back(leaf<T>(key));
  }
  template <class T>
  void optional(const char* key, const T& value) {
    required(key, value);
  }
  template <class T, class F>
  void optional(const char* key, const T& value, F&&) {
    required(key, value);
  }
  template <class T>
  void maybe(const char* key, const std::optional<T>&) {
    leaves_.push_back(leaf<T>(key));
  }
  template <class T>
  void fact(const char* key, const T&) {
    leaves_.push_back({at(key), Leaf::Type::informational, {}, {}, {}});
  }
  template <class T>
  void if_any(const char* key, const T& value) {
    required(key, value);
  }
  void remarks(const char* key, const std::vector<std::pair<std::string, std::string>>& values) {
    fact(key, values);
  }
  void words(const char* key, const std::vector<std::string>& values) { fact(key, values); }

  template <class E>
  void choices(const char* key, const std::vector<E>&, const std::vector<E>&) {
    leaves_.push_back({at(key), Leaf::Type::list, {}, {}, {}});
  }

  template <class T>
  void shared(const char* key, const char* total_key, std::int64_t, const T&) {
    leaves_.push_back(leaf<T>(key));
    leaves_.back().replaces = at(total_key);
    leaves_.push_back(leaf<T>(total_key));
    leaves_.back().replaces = at(key);
  }
  template <class F>
  void group(const char* key, F&& describe_group) {
    Lister inner(at(key), leaves_);
    describe_group(inner);
  }
  template <class F>
  void optional_group(const char* key, F&& describe_group) {
    group(key, describe_group);
  }
  template <class T, class F>
  void maybe_group(const char* key, const std::optional<T>&, F&& describe_group) {
    T value;
    group(key, [&](Lister& inner) { describe_group(inner, value); });
  }
  void comment(const char*) {}
  void checkpoints(const char*) {}
  void unused(const char*, const std::string&) {}

 private:
  [[nodiscard]] std::string at(std::string_view key) const { return key_path(prefix_, key); }
  template <class T>
  [[nodiscard]] Leaf leaf(const char* key) const {
    Leaf result{at(key), Leaf::Type::number, {}, {}, {}};
    if constexpr (std::is_same_v<T, std::string>) {
      result.type = Leaf::Type::text;
    } else if constexpr (std::is_same_v<T, bool>) {
      result.type = Leaf::Type::flag;
      result.choices = {"false", "true"};
    } else if constexpr (std::is_enum_v<T>) {
      result.type = Leaf::Type::choice;
      result.choices.assign(enum_names<T>().begin(), enum_names<T>().end());
    } else if constexpr (std::is_integral_v<T>) {
      result.type = Leaf::Type::integer;
    } else if constexpr (Dimensional<T>) {
      result.type = Leaf::Type::quantity;
      result.dimension = dimension_of(T{});
    }
    return result;
  }

  std::string prefix_;
  std::vector<Leaf>& leaves_;
};

}  // namespace shardscape::yaml
