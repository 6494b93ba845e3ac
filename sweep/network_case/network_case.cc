#include "sweep/network_case/network_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/base/safe_text.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "sweep/input/input_file.h"
#include "sweep/network_case/json_document.h"
#include "sweep/network_case/readers.h"

namespace shardscape::network_case {

namespace {

/// Translates the engine's names of fields in a problem into the keys of the file.
std::string path_in_file(std::string field, const std::vector<network::Pattern>& patterns) {
  const auto rename = [&](std::string_view from, std::string_view to) {
    const std::size_t found = field.find(from);
    if (found != std::string::npos) field.replace(found, from.size(), to);
  };
  rename("].sends", "].list");
  rename("].algorithm", "].algo");
  constexpr std::size_t kIndex = std::string_view("patterns[").size();
  const std::size_t pattern = std::stoul(field.substr(kIndex));
  if (patterns[pattern].operation == network::Operation::pipeline) rename("].groups", "].chains");
  return field;
}

class CaseReader {
 public:
  CaseReader(const nlohmann::json& document, const CaseLimits& limits, Problems& problems)
      : root_(document, "", problems), limits_(limits), problems_(problems) {}

  std::optional<NetworkCase> read() {
    (void)root_.object({"name", "topology", "faults", "patterns"});
    std::string name;
    if (const auto text = root_.optional_member("name")) name = text->string().value_or("");
    const auto topology = root_.member("topology");
    const auto spec = topology ? read_topology(*topology, limits_, problems_) : std::nullopt;
    std::optional<network::Fabric> fabric;
    if (spec) fabric.emplace(*spec);
    FaultSet faults;
    if (const auto list = root_.optional_member("faults"); list && fabric)
      faults = read_faults(*list, *fabric);
    read_patterns();
    if (fabric) check_patterns(*fabric, faults);
    if (!problems_.empty() || !fabric) return std::nullopt;
    return NetworkCase{std::move(name), *std::move(fabric), std::move(faults), std::move(patterns_)};
  }

 private:
  void read_patterns() {
    const auto patterns = root_.member("patterns");
    const auto list = patterns ? patterns->elements() : std::nullopt;
    if (!list) return;
    if (list->empty()) patterns->fail("needs at least one pattern");
    for (const JsonReader& pattern : *list) {
      const auto read = pattern.object_at_all() ? read_pattern(pattern) : std::nullopt;
      patterns_.push_back(read.value_or(network::Pattern{}));
      known_.push_back(read.has_value());
    }
  }

  /// Adds the problems that the engine finds, except those that only follow from a malformed value already reported.
  void check_patterns(const network::Fabric& fabric, const FaultSet& faults) {
    network::FaultyFabric faulty(fabric);
    faulty.set_faults(faults);
    const Problems found = network::check_patterns(patterns_, faulty);
    const std::size_t malformed = problems_.list().size();
    for (const Problem& problem : found.list()) {
      constexpr std::size_t kIndex = std::string_view("patterns[").size();
      if (!known_[std::stoul(problem.field.substr(kIndex))]) continue;
      const std::string field = path_in_file(problem.field, patterns_);
      const auto about = std::span(problems_.list()).first(malformed);
      const bool follows = std::ranges::any_of(
          about, [&](const Problem& m) { return encloses(field, m.field) || encloses(m.field, field); });
      if (!follows) problems_.add(field, problem.message);
    }
  }

  /// Whether the place `inner` is `outer` itself or lies inside it.
  static bool encloses(std::string_view outer, std::string_view inner) {
    if (!inner.starts_with(outer)) return false;
    return inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[';
  }

  JsonReader root_;
  const CaseLimits& limits_;
  Problems& problems_;
  std::vector<network::Pattern> patterns_;
  std::vector<bool> known_;  ///< by pattern: whether its operation could be read
};

}  // namespace

std::string located(const Problems& problems, const std::string& file) {
  std::string lines;
  for (const Problem& problem : problems.list()) {
    lines +=
        message_line(file + ": " + (problem.field.empty() ? "" : problem.field + ": ") + problem.message);
    lines += '\n';
  }
  return lines;
}

tl::expected<NetworkCase, std::string> parse_case(std::string_view text, const std::string& file,
                                                  const CaseLimits& limits) {
  const auto document = parse_json(text);
  if (!document) {
    const SyntaxError& error = document.error();
    return tl::unexpected(
        message_line(fmt::format("{}:{}:{}: {}", file, error.line, error.column, error.message)) + "\n");
  }
  Problems problems;
  auto result = CaseReader(*document, limits, problems).read();
  if (!result) return tl::unexpected(located(problems, file));
  return *std::move(result);
}

tl::expected<NetworkCase, std::string> load_case(const std::filesystem::path& file) {
  const auto text = input::read_file(file, input::kMostCaseBytes, "a case");
  if (!text) return tl::unexpected(message_line(file.string() + ": " + text.error()) + "\n");
  return parse_case(*text, file.string());
}

}  // namespace shardscape::network_case
