// Reads the fault samples of a result file and sums them up by plan, by place and by group of places; ranks the plans;
// computes the distribution of slowdowns.
#include "sweep/faults/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "engine/spec/fault.h"
#include "results_schema/reading/row_scan.h"
#include "results_schema/rows/summary.h"
#include "sweep/faults/fault_statistics.h"

namespace shardscape::sweep {

namespace {

using results::ResultReader;

void require_samples(const ResultReader& reader) {
  if (!reader.samples().columns().empty()) return;
  throw results::StoreError("results", "hold no fault samples: the study has no faults");
}

/// A row of /fault_samples, without the point's id.
struct Row {
  std::int32_t sample = 0, fault = 0;
  FaultKind kind = FaultKind::soft_link;
  std::int32_t link = -1, device = -1;
  double derate = 0;
  double slowdown = 0;  ///< NaN where unreachable
};

std::int32_t id_or_none(double value) { return std::isnan(value) ? -1 : static_cast<std::int32_t>(value); }

template <class Use>
void for_each_row(const ResultReader& reader, const Use& use) {
  for (results::RowScan scan(reader.samples(),
                             {"sample", "fault", "kind", "link_id", "device", "derate", "slowdown"});
       scan.next();) {
    const auto sample = scan.values(0), fault = scan.values(1), kind = scan.values(2), link = scan.values(3),
               device = scan.values(4), derate = scan.values(5), slowdown = scan.values(6);
    for (std::size_t i = 0; i < scan.size(); ++i) {
      use(Row{static_cast<std::int32_t>(sample[i]), static_cast<std::int32_t>(fault[i]),
              static_cast<FaultKind>(kind[i]), id_or_none(link[i]), id_or_none(device[i]), derate[i],
              slowdown[i]});
    }
  }
}

class Gatherer {
 public:
  void add(const Row& row) {
    const double slowdown = row.slowdown;
    ++samples_;
    draws_.insert(row.sample);
    left_ += row.derate;
    if (std::isnan(slowdown)) return;
    ++reached_;
    sum_ += slowdown;
    max_ = std::max(max_, slowdown);
    if (slowdown > kNoticeable) ++noticeable_;
  }
  [[nodiscard]] PlaceSensitivity finish(std::string place, bool link) const {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    const auto count = static_cast<double>(reached_);
    PlaceSensitivity result{std::move(place),
                            link,
                            samples_,
                            samples_ - reached_,
                            kNaN,
                            kNaN,
                            kNaN,
                            draws_.size(),
                            left_ / static_cast<double>(samples_)};
    if (reached_ == 0) return result;
    result.mean = sum_ / count;
    result.max = max_;
    result.above_1pct = static_cast<double>(noticeable_) / count;
    return result;
  }

 private:
  std::uint64_t samples_ = 0, reached_ = 0, noticeable_ = 0;
  std::set<std::int32_t> draws_;
  double left_ = 0, sum_ = 0, max_ = -std::numeric_limits<double>::infinity();
};

void worst_first(std::vector<PlaceSensitivity>& places) {
  std::ranges::stable_sort(places, [](const PlaceSensitivity& a, const PlaceSensitivity& b) {
    if (std::isnan(a.mean) || std::isnan(b.mean)) return !std::isnan(a.mean) && std::isnan(b.mean);
    return a.mean > b.mean;
  });
}

/// Ranks of the plans by a value, from 1: without a value last, equal ones by point id.
std::vector<std::uint64_t> ranks_by(const std::vector<PlanSensitivity>& plans,
                                    double PlanSensitivity::*value) {
  std::vector<std::size_t> order(plans.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const double x = plans[a].*value, y = plans[b].*value;
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    if (!std::isnan(x) && x != y) return x < y;
    return plans[a].point_id < plans[b].point_id;
  });
  std::vector<std::uint64_t> ranks(plans.size());
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = i + 1;
  return ranks;
}

void mark_pareto(std::vector<PlanSensitivity>& plans) {
  results::SummaryBuilder builder(
      {results::Better::smaller, results::Better::smaller, results::Better::smaller});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const double values[] = {plans[i].healthy_s, plans[i].p95, plans[i].memory_bytes};
    builder.add(i, Status::ok, Reason::none, values);
  }
  for (const results::RankedPoint& point : builder.finish().pareto) plans[point.point_id].pareto = true;
}

}  // namespace

std::vector<PlanSensitivity> rank_plans(const ResultReader& reader) {
  require_samples(reader);
  const bool training = reader.find("step_time_s") != nullptr;
  enum Column : std::size_t { status, healthy, expected, mean, p95, max, memory };
  std::vector<PlanSensitivity> plans;
  for (results::RowScan scan(reader, {"status", training ? "step_time_s" : "e2e_s",
                                      training ? "expected_step_time_s" : "expected_e2e_s", "slowdown_mean",
                                      "slowdown_p95", "slowdown_max", "memory_peak_bytes"});
       scan.next();) {
    const std::vector<std::uint64_t> ids = scan.point_ids();
    for (std::size_t i = 0; i < scan.size(); ++i) {
      if (static_cast<Status>(scan.values(status)[i]) != Status::ok) continue;
      plans.push_back({scan.first_row() + i, ids[i], 0, 0, scan.values(healthy)[i], scan.values(expected)[i],
                       scan.values(mean)[i], scan.values(p95)[i], scan.values(max)[i], scan.values(memory)[i],
                       false});
    }
  }
  const auto ranks = ranks_by(plans, &PlanSensitivity::expected_s);
  const auto healthy_ranks = ranks_by(plans, &PlanSensitivity::healthy_s);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i].rank = ranks[i];
    plans[i].healthy_rank = healthy_ranks[i];
  }
  mark_pareto(plans);
  std::ranges::sort(plans, {}, &PlanSensitivity::rank);
  return plans;
}

std::vector<PlaceSensitivity> rank_places(const ResultReader& reader) {
  require_samples(reader);
  std::map<std::tuple<bool, std::int32_t, std::string>, Gatherer> places;
  std::map<std::int32_t, std::string> names;
  const auto dimensions = reader.link_dimensions();
  for (const results::LinkRecord& link : reader.links()) {
    names[link.link_id] = fmt::format("{}: {} - {}", dimensions[static_cast<std::size_t>(link.dimension)],
                                      link.source, link.destination);
  }
  for_each_row(reader, [&](const Row& row) {
    const bool device = row.link < 0;
    const std::string name =
        device ? fmt::format("{} {}", name_of(row_of(row.kind).owner), row.device) : names[row.link];
    places[{device, device ? row.device : row.link, name}].add(row);
  });
  std::vector<PlaceSensitivity> ranked;
  for (const auto& [key, gathered] : places)
    ranked.push_back(gathered.finish(std::get<2>(key), !std::get<0>(key)));
  worst_first(ranked);
  return ranked;
}

std::vector<PlaceSensitivity> rank_dimensions(const ResultReader& reader) {
  require_samples(reader);
  std::map<std::int32_t, std::int32_t> dimension_of;
  for (const results::LinkRecord& link : reader.links()) dimension_of[link.link_id] = link.dimension;
  std::map<std::pair<bool, std::int32_t>, Gatherer> groups;
  for_each_row(reader, [&](const Row& row) {
    const bool device = row.link < 0;
    groups[{device, device ? static_cast<std::int32_t>(row.kind) : dimension_of[row.link]}].add(row);
  });
  const auto dimensions = reader.link_dimensions();
  std::vector<PlaceSensitivity> ranked;
  for (const auto& [key, gathered] : groups) {
    const auto [device, index] = key;
    ranked.push_back(gathered.finish(device ? std::string(name_of(static_cast<FaultKind>(index)))
                                            : dimensions[static_cast<std::size_t>(index)],
                                     !device));
  }
  worst_first(ranked);
  return ranked;
}

std::vector<DistributionPoint> slowdown_distribution(const ResultReader& reader,
                                                     std::span<const double> shares) {
  require_samples(reader);
  std::vector<double> slowdowns;
  for_each_row(reader, [&](const Row& row) {
    if (row.fault == 0 && !std::isnan(row.slowdown)) slowdowns.push_back(row.slowdown);
  });
  if (slowdowns.empty()) return {};
  std::ranges::sort(slowdowns);
  std::vector<DistributionPoint> points;
  for (const double share : shares) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(slowdowns.size()) - 1e-9));
    points.push_back({share, slowdowns[std::clamp<std::size_t>(rank, 1, slowdowns.size()) - 1]});
  }
  return points;
}

}  // namespace shardscape::sweep
