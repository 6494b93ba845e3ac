#include "sweep/cli/ranks/rank_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/safe_text.h"
#include "results_schema/disk/sha256.h"
#include "sweep/yaml/loader.h"

namespace shardscape::cli {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SharedFact, what, value, readable)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankView, facts, problems, threads)

namespace {

std::string points_text(const results::BlockLayout& layout) {
  return fmt::format("{} ({}) of {} points, blocks {} to {} of {} rows, seed {}", layout.total_points,
                     name_of(layout.selection.kind), layout.selection.study_points, layout.blocks.first,
                     layout.blocks.end(), layout.rows_per_block, layout.selection.seed);
}

/// How a rank's facts differ from those of rank 0; empty where they do not.
std::string difference(const RankView& view, const RankView& first) {
  const auto differ = [](const SharedFact& a, const SharedFact& b) {
    return a.what != b.what || a.value != b.value;
  };
  for (std::size_t i = 0; i < std::min(view.facts.size(), first.facts.size()); ++i) {
    const SharedFact &own = view.facts[i], &led = first.facts[i];
    if (!differ(own, led)) continue;
    if (own.what != led.what) return "reads " + own.what + ", rank 0 " + led.what;
    return own.readable ? fmt::format("{} is {}, on rank 0 {}", own.what, own.value, led.value)
                        : own.what + " is not what rank 0 reads";
  }
  return view.facts.size() == first.facts.size() ? "" : "reads other files than rank 0";
}

}  // namespace

std::vector<SharedFact> facts_of(const results::Manifest& manifest, const std::string& output,
                                 bool reference) {
  std::vector<SharedFact> facts = {
      {"the version of the program", manifest.run.software_version + " (" + manifest.run.git_commit + ")"},
      {"the study", manifest.study.title},
      {"the output", output},
      {"--reference", reference ? "given" : "not given"}};
  for (const results::SourceText& source : manifest.study.sources) {
    facts.push_back(
        {.what = "the text of " + source.name, .value = results::sha256_hex(source.text), .readable = false});
  }
  facts.push_back({.what = "the study with its settings (--set)",
                   .value = results::study_sha256(manifest.study),
                   .readable = false});
  facts.push_back({"the choice of points", points_text(manifest.layout)});
  facts.push_back({.what = "the table of columns",
                   .value = results::columns_sha256(manifest.columns),
                   .readable = false});
  return facts;
}

std::vector<SharedFact> facts_of(const yaml::Catalog& presets) {
  std::vector<SharedFact> facts;
  for (const yaml::PresetKind kind : enum_values<yaml::PresetKind>()) {
    for (const yaml::Catalog::Entry& preset : presets.list(kind)) {
      const auto text = yaml::read_text(preset.file);
      facts.push_back({.what = fmt::format("the {} preset {}", name_of(kind), preset.name),
                       .value = text ? results::sha256_hex(*text) : text.error(),
                       .readable = false});
    }
  }
  return facts;
}

std::vector<RankView> agree_on(const RankView& view, const std::exception_ptr& failure, ranks::Ranks& ranks) {
  std::vector<RankView> views;
  for (const std::string& text : ranks.gather(json_text(nlohmann::json(view))))
    views.push_back(nlohmann::json::parse(text).get<RankView>());
  if (ranks.rank() != 0) return views;
  if (failure) std::rethrow_exception(failure);
  auto problems = disagreements(views, [&](int rank) { return ranks.name(rank); });
  if (!problems.empty()) throw BadInput(std::move(problems));
  return views;
}

std::vector<std::string> disagreements(std::span<const RankView> views,
                                       const std::function<std::string(int)>& name) {
  struct Complaint {
    std::string text;
    std::vector<int> ranks;
  };
  std::vector<Complaint> complaints;
  const auto complain = [&](int rank, const std::string& text) {
    const auto same = std::find_if(complaints.begin(), complaints.end(),
                                   [&](const Complaint& complaint) { return complaint.text == text; });
    if (same == complaints.end()) {
      complaints.push_back({text, {rank}});
    } else {
      same->ranks.push_back(rank);
    }
  };
  for (std::size_t i = 1; i < views.size(); ++i) {
    const int rank = static_cast<int>(i);
    for (const std::string& problem : views[i].problems) complain(rank, problem);
    const std::string other = views[i].problems.empty() ? difference(views[i], views[0]) : "";
    if (!other.empty()) complain(rank, other + "; all ranks need the same files, program and options");
  }
  std::vector<std::string> lines;
  for (const Complaint& complaint : complaints) {
    const std::size_t more = complaint.ranks.size() - 1;
    lines.push_back(name(complaint.ranks.front()) + (more == 0 ? "" : fmt::format(" and {} more", more)) +
                    ": " + complaint.text);
  }
  return lines;
}

}  // namespace shardscape::cli
