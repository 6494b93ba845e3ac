#include "sweep/explorer/node_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/safe_text.h"

namespace shardscape::explorer {

using Json = nlohmann::ordered_json;
using yaml::Node;

Json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return nullptr;
    case Node::Kind::scalar:
      return node.quoted ? "'" + node.text : node.text;
    case Node::Kind::list: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Node::Kind::map:
      break;
  }
  Json map = Json::object();
  for (const yaml::Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
  return map;
}

Node from_json(const Json& json, const yaml::Location& where) {
  Node node;
  if (json.is_object()) {
    node = Node::map();
    for (const auto& [key, value] : json.items())
      node.entries.push_back({key, where, from_json(value, where)});
  } else if (json.is_array()) {
    node = Node::list();
    for (const Json& item : json) node.items.push_back(from_json(item, where));
    node.flow = std::ranges::all_of(node.items, &Node::is_scalar);
  } else if (!json.is_null()) {
    std::string text = json.is_string() ? json.get<std::string>() : json_text(json);
    const bool quoted = text.starts_with('\'');
    node = Node::scalar(quoted ? text.substr(1) : std::move(text));
    node.quoted = quoted;
  }
  node.where = where;
  return node;
}

}  // namespace shardscape::explorer
