// What the readers of the data files share.
#pragma once

#include <string>

#include "sweep/launch/facts.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::launch {

/// Reads a key's text as `parse(text)` has it, or reports why that cannot be.
template <class T, class Parse>
void read_parsed(yaml::Reader& map, const char* key, const yaml::Node& node, T& value, const Parse& parse) {
  using Parsed = decltype(parse(std::string()));
  const auto text = yaml::scalar_text(node, "text");
  const Parsed parsed = text ? parse(*text) : Parsed(tl::unexpect, text.error());
  typename Parsed::value_type read{};
  if (map.keep(key, node, parsed, read)) value = std::move(read);
}

/// Adds the names that the file's `where` defines, each of those before it.
void read_definitions(yaml::Reader& map, Vocabulary& words);

}  // namespace shardscape::launch
