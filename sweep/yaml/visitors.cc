// Bookkeeping of Reader (places of fields, problems, unknown keys) and the parts of the visitors that do not depend on
// types.
#include "sweep/yaml/visitors.h"

#include <algorithm>
#include <span>

#include "engine/base/suggest.h"
#include "engine/spec/fabric_spec.h"
#include "sweep/yaml/closest_names.h"

namespace shardscape::yaml {

namespace {

constexpr std::int64_t kMaxExtent = 1 << 30;

/// The field that contains a field: "a.b[2]" for "a.b[2].c", "" for "a".
std::string parent(const std::string& field) {
  const std::size_t cut = field.find_last_of(".[");
  return cut == std::string::npos ? std::string() : field.substr(0, cut);
}

bool inside(const std::string& field, const std::string& outer) {
  return field.size() > outer.size() && field.starts_with(outer) &&
         (outer.empty() || field[outer.size()] == '.' || field[outer.size()] == '[');
}

}  // namespace

ReadState::ReadState(const Location& root, std::string prefix, Diagnostics& diagnostics)
    : root_(root), prefix_(std::move(prefix)), diagnostics_(diagnostics) {}

void ReadState::seen(const std::string& field, const Location& where) {
  places_.insert({field, {.where = where}});
}

void ReadState::bad(const std::string& field, const Location& where, const std::string& message) {
  places_[field] = {.where = where, .bad = true};
  failed_ = true;
  diagnostics_.add(where, shown(field), message);
}

std::string ReadState::shown(const std::string& field) const {
  if (prefix_.empty() || field.empty()) return prefix_ + field;
  return prefix_ + '.' + field;
}

Location ReadState::nearest(std::string field) const {
  while (!field.empty()) {
    if (const auto it = places_.find(field); it != places_.end()) return it->second.where;
    field = parent(field);
  }
  return root_;
}

bool ReadState::follows_from_bad(const std::string& field) const {
  if (!failed_) return false;
  const auto it = places_.find(field);
  if (it == places_.end()) return true;  // a default, which may have been computed from an unreadable field
  return std::ranges::any_of(places_, [&](const auto& entry) {
    const auto& [name, place] = entry;
    return place.bad && (name == field || inside(name, field) || inside(field, name));
  });
}

std::string ReadState::elsewhere(std::string_view field) const {
  return paths_ == nullptr ? "" : same_key(field, paths_());
}

void ReadState::report(const Problems& problems) {
  for (const Problem& problem : problems.list()) {
    if (follows_from_bad(problem.field)) continue;
    diagnostics_.add(nearest(problem.field), shown(problem.field), problem.message);
  }
  failed_ = failed_ || !problems.empty();
}

Reader::Reader(const Node& node, std::string path, ReadState& state)
    : node_(node), path_(std::move(path)), state_(state) {
  if (!node.is_map()) {
    state_.bad(path_, node.where, fmt::format("must be a map of keys and values, not {}", kind_name(node)));
    return;
  }
  if (!path_.empty()) state_.seen(path_, node.where);
  std::map<std::string_view, const Entry*> first;
  for (const Entry& entry : node.entries) {
    const auto [it, fresh] = first.emplace(entry.key, &entry);
    if (fresh) continue;
    state_.bad(at(entry.key), entry.key_where,
               fmt::format("duplicate key; first given at line {}", it->second->key_where.line));
  }
}

std::string Reader::at(std::string_view key) const { return key_path(path_, key); }

const Node* Reader::take(const char* key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  return node_.find(key);
}

const Node* Reader::take_required(const char* key) {
  const Node* node = take(key);
  if (node == nullptr && node_.is_map()) bad(key, node_, "missing; this key is required");
  return node;
}

void Reader::finish() {
  if (!node_.is_map() || !strict_) return;
  for (const Entry& entry : node_.entries) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    if (state_.full()) return state_.bad(at(entry.key), entry.key_where, "unknown key");
    const std::string elsewhere = nearest_name(entry.key, known_) ? "" : state_.elsewhere(at(entry.key));
    const std::string meant =
        elsewhere.empty() ? suggestion(entry.key, known_, "keys") : "; did you mean \"" + elsewhere + "\"?";
    state_.bad(at(entry.key), entry.key_where, "unknown key" + meant);
  }
}

void Reader::remarks(const char* key, std::vector<std::pair<std::string, std::string>>& values) {
  const Node* node = take(key);
  if (node == nullptr) return;
  Reader inner(*node, at(key), state_);
  for (const Entry& entry : node->entries) {
    std::string text;
    inner.optional(entry.key.c_str(), text);
    values.emplace_back(entry.key, text);
  }
}

void Reader::words(const char* key, std::vector<std::string>& values) {
  const Node* node = take(key);
  if (node == nullptr) return;
  state_.seen(at(key), node->where);
  const std::vector<Node> one = node->is_list() ? std::vector<Node>{} : std::vector<Node>{*node};
  for (const Node& item : node->is_list() ? node->items : one) {
    keep(key, item, parse_value<std::string>(item), values.emplace_back());
  }
}

std::pair<const Node*, const Node*> Reader::take_one_of(const char* key, const char* total_key) {
  const Node* each = take(key);
  const Node* total = take(total_key);
  if (each != nullptr && total != nullptr) {
    bad(total_key, *total,
        fmt::format("given twice: as {} and as the total {}; keep one of them", key, total_key));
    total = nullptr;
  } else if (each == nullptr && total == nullptr && node_.is_map()) {
    bad(key, node_, fmt::format("missing; give {} or the total {}", key, total_key));
  }
  return {each, total};
}

bool Reader::exactly_one(const char* key, const Node* first, const char* other_key, const Node* second) {
  if ((first != nullptr) != (second != nullptr)) return true;
  const std::string keys = fmt::format("{} or {}", key, other_key);
  if (first != nullptr) {
    bad(other_key, *second, "given twice; keep " + keys);
  } else if (node_.is_map()) {
    bad(key, node_, "missing; give " + keys);
  }
  return false;
}

void Reader::ends(const char* both_key, const char* from_key, const char* to_key, std::int64_t& a,
                  std::int64_t& b, bool& one_way) {
  const Node* both = take(both_key);
  const Node* from = take(from_key);
  const Node* to = take(to_key);
  const bool either_way = both != nullptr && from == nullptr && to == nullptr;
  one_way = both == nullptr && from != nullptr && to != nullptr;
  const std::string due = fmt::format("{}: [a, b], or {} and {}", both_key, from_key, to_key);
  if (!either_way && !one_way) {
    if (node_.is_map()) bad(both_key, node_, "give " + due);
  } else if (one_way) {
    assign(from_key, *from, a);
    assign(to_key, *to, b);
  } else if (!both->is_list() || both->items.size() != 2) {
    bad(both_key, *both, "must be a list of two vertices");
  } else {
    assign(both_key, both->items[0], a);
    assign(both_key, both->items[1], b);
  }
}

const Node* Reader::take_list(const char* key) {
  const Node* node = take_required(key);
  if (node == nullptr || node->is_list()) {
    if (node != nullptr) state_.seen(at(key), node->where);
    return node;
  }
  bad(key, *node, fmt::format("must be a list, not {}", kind_name(*node)));
  return nullptr;
}

void Reader::extents(const char* size_key, const char* shape_key, std::vector<std::int64_t>& values) {
  const Node* size = take(size_key);
  const Node* shape = take(shape_key);
  if ((size == nullptr) == (shape == nullptr)) {
    const Location& where = shape != nullptr ? shape->where : node_.where;
    const std::string what =
        fmt::format("{} (a number or fill) or {} (a list of numbers)", size_key, shape_key);
    if (node_.is_map())
      state_.bad(at(shape_key), where, (shape ? "given twice: keep " : "missing; give ") + what);
    return;
  }
  const char* const key = size != nullptr ? size_key : shape_key;
  const Node& given = size != nullptr ? *size : *shape;
  state_.seen(at(shape_key), given.where);
  if (size != nullptr && size->is_scalar() && size->text == "fill") {
    values = {FabricTemplate::kFill};
    return;
  }
  if (shape != nullptr && !shape->is_list()) {
    bad(key, given, fmt::format("must be a list of numbers, not {}", kind_name(given)));
    return;
  }
  const std::vector<Node> single{given};
  for (const Node& extent : size != nullptr ? single : shape->items) {
    std::int64_t value = 1;
    keep(key, extent, parse_integer_node(extent, 1, kMaxExtent), value);
    values.push_back(value);
  }
}

void Reader::comment(const char* key) {
  const Node* node = take(key);
  if (node == nullptr || node->is_scalar()) return;
  const bool texts = node->is_list() && std::ranges::all_of(node->items, &Node::is_scalar);
  if (!texts) bad(key, *node, "must be text or a list of texts");
}

void Reader::checkpoints(const char* key) {
  const Node* const node = take(key);
  if (node == nullptr) return;
  std::vector<std::string> known;
  for (const Node& item : node->is_list() ? std::span(node->items) : std::span(node, 1)) {
    const Node* const name = item.is_map() && node->is_list() ? item.find("name") : &item;
    if (name == nullptr || !name->is_scalar() || name->text.empty()) {
      bad(key, item, "must be a name, or a list of names and of maps with a name and what differs");
      continue;
    }
    std::string same = lower_case(name->text);
    if (std::ranges::find(known, same) != known.end()) bad(key, *name, "has \"" + name->text + "\" twice");
    known.push_back(std::move(same));
  }
}

void Writer::remarks(const char* key, const std::vector<std::pair<std::string, std::string>>& values) {
  if (values.empty()) return;
  group(key, [&](Writer& inner) {
    for (const auto& [name, text] : values) inner.required(name.c_str(), text);
  });
}

void Writer::words(const char* key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  map_.set(key, flow_list(values));
}

void Writer::ends(const char* both_key, const char* from_key, const char* to_key, std::int64_t a,
                  std::int64_t b, bool one_way) {
  if (one_way) {
    required(from_key, a);
    required(to_key, b);
    return;
  }
  map_.set(both_key, flow_list({a, b}));
}

void Writer::extents(const char* size_key, const char* shape_key, const std::vector<std::int64_t>& values) {
  if (values.size() == 1) {
    const std::int64_t size = values.front();
    map_.set(size_key, Node::scalar(size == FabricTemplate::kFill ? "fill" : std::to_string(size)));
    return;
  }
  map_.set(shape_key, flow_list(values));
}

}  // namespace shardscape::yaml
