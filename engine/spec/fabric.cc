#include "engine/spec/fabric.h"

#include <set>
#include <string>

namespace shardscape {

namespace {

std::string at(std::size_t dimension, const char* field) {
  return "dimensions[" + std::to_string(dimension) + "]." + field;
}

bool shaped(DimensionKind kind) { return kind == DimensionKind::mesh || kind == DimensionKind::torus; }

bool may_be_partly_used(DimensionKind kind) {
  return kind == DimensionKind::switched || kind == DimensionKind::fully_connected;
}

void drop_trivial_dimensions(FabricSpec& fabric) {
  std::erase_if(fabric.dimensions, [](const DimensionSpec& d) { return d.size() == 1; });
}

}  // namespace

std::int64_t DimensionSpec::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t FabricSpec::size() const {
  std::int64_t product = 1;
  for (const DimensionSpec& dimension : dimensions) product *= dimension.size();
  return product;
}

Problems FabricSpec::validate() const {
  Problems problems;
  std::set<std::string> names;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const DimensionSpec& dimension = dimensions[i];
    problems.require(!dimension.name.empty(), at(i, "name"), "every dimension needs a name");
    problems.require(names.insert(dimension.name).second, at(i, "name"),
                     "'" + dimension.name + "' names an earlier dimension, too");
    problems.require(!dimension.shape.empty(), at(i, "shape"), "needs at least one extent");
    problems.require(shaped(dimension.kind) || dimension.shape.size() <= 1, at(i, "shape"),
                     "only mesh and torus take several extents");
    for (const std::int64_t extent : dimension.shape) {
      problems.require(extent >= 1 || (extent == FabricTemplate::kFill && i + 1 == dimensions.size() &&
                                       dimension.shape.size() == 1),
                       at(i, "shape"), "extents are at least 1 (`fill` is for the outermost dimension only)");
    }
    problems.require(dimension.bandwidth.value() > 0, at(i, "bandwidth"), "must be greater than 0");
    problems.require(dimension.latency.value() >= 0, at(i, "latency"), "must not be negative");
  }
  problems.require(!dimensions.empty(), "dimensions", "a fabric has at least one dimension");
  return problems;
}

bool FabricTemplate::open() const {
  if (fabric.dimensions.empty()) return false;
  const std::vector<std::int64_t>& shape = fabric.dimensions.back().shape;
  return shape.size() == 1 && shape.front() == kFill;
}

FabricSpec FabricTemplate::instantiate(std::int64_t gpus, Problems& problems) const {
  FabricSpec result = fabric;
  if (gpus < 1) {
    problems.add("gpus", "is " + std::to_string(gpus) + ", but must be at least 1");
    return result;
  }
  if (!open()) {
    problems.require(gpus == fabric.size(), "gpus",
                     "is " + std::to_string(gpus) + ", but cluster " + fabric.name + " has exactly " +
                         std::to_string(fabric.size()));
    drop_trivial_dimensions(result);
    return result;
  }
  DimensionSpec& outermost = result.dimensions.back();
  outermost.shape = {1};
  const std::int64_t unit = result.size();
  DimensionSpec& innermost = result.dimensions.front();
  if (gpus % unit == 0) {
    outermost.shape = {gpus / unit};
  } else if (result.dimensions.size() == 2 && gpus < unit && may_be_partly_used(innermost.kind)) {
    innermost.shape = {gpus};
  } else {
    problems.add("gpus", "is " + std::to_string(gpus) + ", but cluster " + fabric.name +
                             " grows in units of " + std::to_string(unit));
  }
  drop_trivial_dimensions(result);
  return result;
}

}  // namespace shardscape
