// The process groups of a trace, gathered while its files are read: from the JSON file beside them, and from
// nodes that define groups.
//
// PyTorch's observer records them in a node called "## process_group:init ##", whose input values are a JSON list of
// objects with pg_name and ranks (no ranks: all of them). Any METADATA node with a string pg_name and a list of
// integers called ranks does the same. The file takes precedence over nodes. Group "0", where nothing else defines it,
// is all ranks, as for PyTorch (its default group) and the simulators that follow it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sweep/chakra/node_codec.h"

namespace shardscape::chakra {

class ProcessGroups {
 public:
  /// Defines a group as the groups file states it.
  void define(const std::string& name, std::vector<std::int32_t> ranks);
  /// Learns the groups that a node defines, if any. Returns what is wrong with the node; empty: nothing is.
  std::string learn(const ChakraProtoMsg::Node& node);

  /// Returns the index that the group will have in take(); it may be defined later.
  std::int32_t find(const GroupName& name);
  /// Whether a group whose index find() returned is defined by now.
  [[nodiscard]] bool defined(std::int32_t group) const {
    return entries_[static_cast<std::size_t>(group)].source != Source::none;
  }
  [[nodiscard]] const std::string& name(std::int32_t group) const {
    return entries_[static_cast<std::size_t>(group)].group.name;
  }
  /// The names of all groups that are defined.
  [[nodiscard]] std::vector<std::string> names() const;

  [[nodiscard]] std::vector<timeline::ProcessGroup> take();

 private:
  enum class Source : std::uint8_t { none, assumed, node, file };
  struct Entry {
    timeline::ProcessGroup group;
    Source source = Source::none;
  };
  std::string learn(const std::string& name, std::vector<std::int32_t> ranks);
  std::string learn_list(const std::string& text);
  Entry& entry(const GroupName& name);

  std::vector<Entry> entries_;
  std::map<GroupName, std::int32_t> indices_;
};

}  // namespace shardscape::chakra
