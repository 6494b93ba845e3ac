// What the conditions and values of the data files may name of a case: the axes of its plan ("tp"), keys of its stack
// ("stack.attention") and its model ("model.layers"), its workload, and what follows from them, as numbers and texts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/launch/framework.h"
#include "sweep/space/expression.h"
#include "sweep/yaml/value.h"

namespace shardscape::launch {

/// Every leaf of a tree with its path and its text; a list as "[a, b]".
std::vector<std::pair<std::string, std::string>> leaves_of(const yaml::Node& tree, const std::string& path);

/// The first fact: the part that a row's `each` is at.
inline constexpr std::size_t kPart = 0;

/// Texts count as true where they are not empty. A key that the case has not is false, or a number that equals none.
Facts facts_of(const Case& of);

/// The names that a data file's conditions and values may use: all facts, and those that the file defines.
class Vocabulary {
 public:
  Vocabulary();

  [[nodiscard]] yaml::Parsed<sweep::Expression> condition(const std::string& text) const;
  [[nodiscard]] yaml::Parsed<Template> value(const std::string& text) const;
  /// The index of a fact by its name.
  [[nodiscard]] yaml::Parsed<std::size_t> fact(const std::string& name) const;
  /// Adds a name for a condition or a number.
  yaml::Parsed<bool> define(const std::string& name, const std::string& text);

  /// The facts with the values of the names that are defined.
  [[nodiscard]] Facts complete(Facts facts) const;

 private:
  std::vector<sweep::ExpressionName> names_;
  std::vector<sweep::Expression> defined_;
};

}  // namespace shardscape::launch
