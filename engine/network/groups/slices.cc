#include "engine/network/groups/slices.h"

#include <utility>

#include "engine/network/groups/components.h"

namespace shardscape::network {

SliceLinks::SliceLinks(std::vector<LinkSet> links) : component_of_(links.size()) {
  UnionFind joined(links.size());
  for (std::size_t a = 0; a < links.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (links[a].intersects(links[b])) joined.join(a, b);
    }
  }
  for (const std::vector<std::size_t>& component : joined.sets()) {
    LinkSet all = std::move(links[component.front()]);
    for (const std::size_t slice : component) {
      if (slice != component.front()) all.insert_all(links[slice]);
      component_of_[slice] = components_.size();
    }
    components_.push_back(std::move(all));
  }
}

}  // namespace shardscape::network
