// Answers the requests of the explorer's page: what there is to change, one plan in full, what a further unit of each
// number is worth, and the points of the study. All answers are JSON; a request that is wrong is answered by
// {"problems": [...]}, which say where and what would be right.
//
//   {"ask": "load", "files": {PATH: TEXT}, "study": PATH, "shown": PATH}
//   {"ask": "fields", "set": ["KEY=VALUE"], "point": "tp=8"}
//   {"ask": "predict", "set": [...], "point": "tp=8,pp=4", "schedule": true, "operators": true}
//   {"ask": "worth", "set": [...], "point": "...", "keys": ["hardware.device.hbm.bandwidth"], "share": 0.05}
//   {"ask": "sweep", "set": [...], "from": 0, "count": 200}
//
// `study` is the study with every default and preset written out; `shown` is what its user wrote, which the YAML of an
// answer is made of.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/node.h"

namespace shardscape::explorer {

/// Thrown where a request is wrong: each problem says where, and what would be right.
struct Refused : std::runtime_error {
  explicit Refused(std::vector<std::string> list)
      : std::runtime_error(list.empty() ? "" : list.front()), problems(std::move(list)) {}
  std::vector<std::string> problems;
};

class Answers {
 public:
  using Json = nlohmann::ordered_json;

  /// The answer to a request as text. Never throws.
  std::string text(const std::string& request);
  /// The same as JSON; throws Refused, and nlohmann's exceptions, on bad requests.
  Json answer(const Json& request);

 private:
  Json load(const Json& request);
  Json fields(const Json& request) const;
  Json predict(const Json& request);
  Json worth(const Json& request);
  Json sweep(const Json& request) const;

  /// The study with the changes of a request, and with those of `more`.
  [[nodiscard]] sweep::Study changed(const Json& request, const yaml::Catalog& catalog,
                                     const std::vector<std::string>& more = {}) const;
  /// The same without more changes and with the evidence of the presets; kept until other changes are asked for.
  const sweep::Study& with_evidence(const Json& request);
  /// One of the trees with the changes of a request.
  [[nodiscard]] yaml::Node tree(const std::string& text, const Json& request) const;

  std::string study_, shown_;  ///< texts of the trees
  std::string shown_path_;
  yaml::Catalog presets_;
  std::vector<std::string> kept_changes_;
  std::optional<sweep::Study> kept_;  ///< with kept_changes_
};

}  // namespace shardscape::explorer
