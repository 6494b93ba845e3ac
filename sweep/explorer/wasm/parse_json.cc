// In a browser trees come as JSON (sweep/explorer/node_json.h), and the values of changes as plain scalars: this takes
// the place of the reader of YAML.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sweep/explorer/node_json.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

std::optional<Node> parse(const std::string& text, const std::string& source, Diagnostics& diagnostics) {
  const Location where{std::make_shared<const std::string>(source), 0, 0};
  const std::size_t first = text.find_first_not_of(" \n");
  const bool tree = first != std::string::npos && (text[first] == '{' || text[first] == '[');
  if (!tree) {
    Node node = Node::scalar(text);
    node.where = where;
    return node;
  }
  try {
    return explorer::from_json(nlohmann::ordered_json::parse(text), where);
  } catch (const nlohmann::json::exception&) {
    diagnostics.add(where, "", "lists and maps are written as JSON here: [1, 2], {\"key\": \"value\"}");
    return std::nullopt;
  }
}

}  // namespace shardscape::yaml
