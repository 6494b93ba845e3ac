// Chooses the points of a sweep, divides them into blocks and shards, and keeps what all points share: constraints,
// values of hardware axes, fault draws; writes the manifest.
#include "sweep/runner/sweep_job.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/check.h"
#include "engine/network/fabric/fabric.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

namespace {

std::vector<results::HardwareColumn> hardware_columns(const Study& study) {
  std::vector<results::HardwareColumn> columns;
  for (const HardwareAxis& axis : study.hardware) {
    columns.push_back({axis.column, axis.unit, axis.long_name, axis.choices});
  }
  return columns;
}

results::ColumnTable stored_columns(const Study& study) {
  results::ColumnTable table(study.phase(), hardware_columns(study), study.extras());
  if (!study.stored_columns) return table;
  std::vector<std::string> measures = study.objectives;
  const std::vector<std::string>& front = study.stored_rows.front;
  measures.insert(measures.end(), front.begin(), front.end());
  for (const results::Limit& limit : study.limits) measures.push_back(limit.column);
  table.keep_only(*study.stored_columns, measures);
  return table;
}

/// The values of the hardware axes for each system: the product of the axes, the first one slowest.
std::vector<double> hardware_values(const Study& study) {
  std::vector<double> values;
  for (std::size_t system = 0; system < study.systems.size(); ++system) {
    std::size_t stride = study.systems.size();
    for (const HardwareAxis& axis : study.hardware) {
      stride /= axis.values.size();
      values.push_back(axis.values[system / stride % axis.values.size()]);
    }
  }
  return values;
}

std::vector<Constraint> compile(const std::vector<std::string>& texts) {
  std::vector<Constraint> constraints;
  for (const std::string& text : texts) {
    auto constraint = Constraint::parse(text);
    SHARDSCAPE_CHECK(constraint.has_value(), text);  // the study has been checked, so it parses
    constraints.push_back(*std::move(constraint));
  }
  return constraints;
}

std::shared_ptr<const FaultDraws> draws_of(const Study& study) {
  if (!study.faults) return nullptr;
  // Hardware axes change rates but never the wiring, so that link ids and ranks are equal in every setting.
  return std::make_shared<const FaultDraws>(*study.faults, network::Fabric(study.systems.front().fabric));
}

/// The cost of a feasible point in evaluations of a training step without faults.
std::uint64_t evaluations_per_point(const Study& study, const FaultDraws* draws) {
  constexpr std::uint64_t kServer = 16;               // takes 0.1 ms or more
  constexpr std::uint64_t kPools = 64;                // takes half a millisecond or more
  constexpr std::uint64_t kRequest = 4;               // of a simulated load: some microseconds
  constexpr std::uint64_t kAlikeRequests = 4;         // so many take one or two, where all are alike
  constexpr std::uint64_t kFlattened = 1000;          // takes ten milliseconds or more
  constexpr std::uint64_t kPlacementSearch = 50'000;  // takes half a second or more
  std::uint64_t evaluations = 1 + (draws == nullptr ? 0 : draws->draws().size());
  const bool pools =
      std::ranges::any_of(study.space.prefill_gpus, [](std::int32_t gpus) { return gpus > 0; });
  if (study.phase() == Phase::inference) evaluations *= pools ? kPools : kServer;
  std::uint64_t most = 0;
  for (const WorkloadSpec& workload : study.workloads) {
    if (!workload.load) continue;
    const auto requests = static_cast<std::uint64_t>(workload.load->requests.of(workload.concurrency));
    const bool alike = workload.load->alike() && !pools;
    most = std::max(most, alike ? requests / kAlikeRequests : requests * kRequest);
  }
  evaluations += most;
  if (study.mode != ExecutionMode::hierarchical) evaluations *= kFlattened;
  for (std::size_t system = 0; system < study.systems.size(); ++system) {
    if (placement_of(study, system) == PlacementChoice::optimised) return evaluations + kPlacementSearch;
  }
  return evaluations;
}

/// The rows of a block of the study's points: of simulated loads, which may take seconds, perhaps one.
std::uint32_t block_rows(const Study& study, const FaultDraws* draws, std::uint64_t points) {
  return rows_per_block(points, evaluations_per_point(study, draws), study.workloads.front().load ? 1 : 8);
}

results::BlockLayout chosen_points(const Study& study, const FaultDraws* draws, std::uint64_t points,
                                   std::optional<std::uint64_t> limit, std::optional<Sample> sample) {
  SHARDSCAPE_CHECK(!limit || !sample, *limit, sample->count);
  if (sample && sample->count < points) {
    auto layout = results::BlockLayout::whole(sample->count, block_rows(study, draws, sample->count));
    layout.selection = {results::SelectionKind::sample, points, sample->seed};
    return layout;
  }
  auto layout =
      results::BlockLayout::whole(std::min(points, limit.value_or(points)), block_rows(study, draws, points));
  layout.selection = {
      layout.total_points < points ? results::SelectionKind::first : results::SelectionKind::all, points};
  return layout;
}

results::BlockLayout block_layout(results::BlockLayout layout, Shard shard) {
  SHARDSCAPE_CHECK(shard.index >= 1 && shard.index <= shard.count, shard.index, shard.count);
  const std::uint64_t blocks = layout.blocks.count;
  const auto cut = [&](std::uint64_t part) {  // part * blocks / count without overflow
    return blocks / shard.count * part + blocks % shard.count * part / shard.count;
  };
  layout.blocks = {cut(shard.index - 1), cut(shard.index) - cut(shard.index - 1)};
  return layout;
}

}  // namespace

std::uint32_t rows_per_block(std::uint64_t points, std::uint64_t evaluations, std::uint64_t least_rows) {
  constexpr std::uint64_t kMostEvaluations = 32'768, kLeastEvaluations = 256, kLeastRows = 8;
  SHARDSCAPE_CHECK(evaluations >= 1, evaluations);
  const std::uint64_t worthwhile = std::max(kLeastEvaluations / evaluations, kLeastRows);
  const std::uint64_t many = std::bit_ceil(std::clamp<std::uint64_t>(points / 128, worthwhile, 4096));
  const std::uint64_t quick = std::bit_floor(std::max(kMostEvaluations / evaluations, least_rows));
  return static_cast<std::uint32_t>(std::min(many, quick));
}

SweepJob::SweepJob(const Study& study, std::optional<std::uint64_t> limit, Shard shard,
                   std::optional<Sample> sample)
    : SweepJob(study, std::make_shared<DesignSpace>(study.design_space()), limit, shard, sample) {}

SweepJob::SweepJob(const Study& study, const SweepJob& of_space)
    : SweepJob(study, of_space.space_, std::nullopt, {}, std::nullopt) {}

SweepJob::SweepJob(const Study& study, std::shared_ptr<const DesignSpace> space,
                   std::optional<std::uint64_t> limit, Shard shard, std::optional<Sample> sample)
    : study_(&study),
      space_(std::move(space)),
      constraints_(compile(study.space.constraints)),
      columns_(stored_columns(study)),
      limits_(results::ColumnTable(study.phase(), {}, study.extras()), study.limits),
      fault_draws_(draws_of(study)),
      layout_(block_layout(chosen_points(study, fault_draws_.get(), space_->size(), limit, sample), shard)),
      shards_(layout_.is_unsharded() ? results::ShardRange{}
                                     : results::ShardRange{shard.index, shard.index, shard.count}),
      stored_rows_(study.stored_rows),
      hardware_(hardware_values(study)) {}

SweepJob::SweepJob(const SweepJob& whole, std::vector<std::uint64_t> ids) : SweepJob(whole) {
  SHARDSCAPE_CHECK(!ids.empty() && ids.back() < space_->size(), ids.size(), space_->size());
  const Study& study = *study_;
  const std::uint64_t rows = ids.size();
  stored_rows_ = {};
  layout_ = results::BlockLayout::whole(rows, block_rows(study, fault_draws_.get(), rows));
  layout_.selection = {results::SelectionKind::search, space_->size(), 0,
                       std::make_shared<const std::vector<std::uint64_t>>(std::move(ids))};
}

std::span<const double> SweepJob::hardware(std::uint64_t setting) const {
  const std::size_t axes = study_->hardware.size();
  return std::span(hardware_).subspan(setting / study_->workloads.size() * axes, axes);
}

bool SweepJob::admits(const ParallelPlan& plan, const WorkloadSpec& workload) const {
  return std::ranges::all_of(constraints_, [&](const Constraint& c) { return c.holds(plan, workload); });
}

Prediction SweepJob::judged(std::uint64_t setting, const ParallelPlan& plan, Prediction prediction) const {
  const Prediction healthy = prediction;
  results::PointRecord row{0, plan, workload(setting), hardware(setting), healthy};
  limits_.judge(row, prediction);
  return prediction;
}

results::Manifest SweepJob::manifest(const results::RunInfo& run) const {
  results::Manifest manifest;
  manifest.run = run;
  manifest.layout = layout_;
  manifest.shards = shards_;
  manifest.columns.assign(columns_.columns().begin(), columns_.columns().end());
  if (study_->faults) {
    const auto samples = results::fault_sample_columns();
    manifest.sample_columns.assign(samples.begin(), samples.end());
  }
  results::StudyInfo& info = manifest.study;
  if (study_->faults) info.seed = study_->faults->seed;
  info.title = study_->title;
  info.resolved_yaml = study_->resolved_yaml;
  info.objectives = study_->objectives;
  info.stored_columns = study_->stored_columns;
  info.stored_rows = stored_rows_;
  for (const std::string& line : study_->assumptions) info.assumptions += line + '\n';
  for (const SourceText& source : study_->sources) info.sources.push_back({source.name, source.text});
  const network::Fabric fabric(study_->systems.front().fabric);
  for (const DimensionSpec& dimension : fabric.spec().dimensions) info.dimensions.push_back(dimension.name);
  std::vector<results::LinkRecord> links;
  links.reserve(fabric.links().size());
  for (const network::Link& link : fabric.links()) {
    links.push_back({static_cast<std::int32_t>(links.size()), link.source, link.destination, link.dimension,
                     link.bandwidth.value(), link.latency.value()});
  }
  info.links = std::move(links);
  return manifest;
}

}  // namespace shardscape::sweep
