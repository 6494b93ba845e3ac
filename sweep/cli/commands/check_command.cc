// shardscape check: what a study holds, and what a sweep of it would cost. Evaluates a sample of its blocks to estimate
// shares, times and sizes, and what faults cost by timing draws of points for a few seconds; writes nothing.
#include <fmt/format.h>
#include <oneapi/tbb/info.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <ostream>
#include <span>
#include <utility>

#include "engine/base/strata.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "engine/network/fabric/fabric.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/block.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/runner/block_worker.h"
#include "sweep/runner/search_cost.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/study/faults_parser.h"

namespace shardscape::cli {

namespace {

/// The mean cost of a fault draw of a point in a sweep.
struct FaultCost {
  double draws_per_point = 0;  ///< for points that are ok; fewer than the samples where a target stops them
  double seconds_per_draw = 0;
  double bytes_per_draw = 0;  ///< bytes in the result file
};

constexpr double kMostSeconds = 2;
constexpr std::size_t kMostPoints = 256;

/// CPU seconds of this thread, which other programs do not affect.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A step by which going through `count` draws reaches each once, and all parts of them soon.
std::size_t stride_through(std::size_t count) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  auto step = static_cast<std::size_t>(kGoldenRatio * static_cast<double>(count));
  while (std::gcd(step, count) != 1) ++step;
  return step;
}

/// Times draws of points until its time is used up.
class FaultMeter {
 public:
  explicit FaultMeter(const sweep::SweepJob& job) : job_(job), start_(now()) {}

  [[nodiscard]] bool enough() const { return points_ >= kMostPoints || now() - start_ > kMostSeconds; }

  void measure(std::uint64_t id, const Prediction& healthy, sweep::Evaluator& evaluator) {
    const sweep::FaultDraws& draws = *job_.fault_draws();
    const std::size_t count = draws.draws().size();
    // With a target draws are taken in order, as the stopping rule does.
    const std::size_t step = draws.study().target_ci ? 1 : stride_through(count);
    sweep::StoppingRule rule(draws.study().target_ci);
    const double before = now();
    std::size_t taken = 0;
    bool stopped = false;
    for (; taken < count && !stopped && now() - start_ <= kMostSeconds; ++taken) {
      const double slowdown = sweep::sample_fault(draws.draws()[taken * step % count], id, healthy,
                                                  job_.study().phase(), evaluator, rows_);
      stopped = rule.add(slowdown);
    }
    seconds_ += now() - before;
    draws_ += taken;
    ++points_;
    // Out of time: tells nothing about the number of draws until a stop.
    if (!stopped && taken < count) return;
    ++finished_;
    draws_of_finished_ += taken;
  }

  [[nodiscard]] FaultCost cost() const {
    FaultCost cost;
    if (draws_ == 0) return cost;
    const auto draws = static_cast<double>(draws_);
    cost.draws_per_point = finished_ > 0
                               ? static_cast<double>(draws_of_finished_) / static_cast<double>(finished_)
                               : static_cast<double>(job_.fault_draws()->draws().size());
    cost.seconds_per_draw = seconds_ / draws;
    cost.bytes_per_draw = static_cast<double>(results::packed_bytes(rows_)) / draws;
    return cost;
  }

 private:
  const sweep::SweepJob& job_;
  double start_, seconds_ = 0;
  std::size_t points_ = 0, draws_ = 0, finished_ = 0, draws_of_finished_ = 0;
  std::vector<results::FaultSampleRecord> rows_;
};

std::string kinds_of(const sweep::FaultStudy& study, const network::Fabric& fabric) {
  double total = 0;
  for (const sweep::WeightedKind& weighted : study.kinds) total += weighted.weight;
  std::vector<std::string> texts;
  for (const sweep::WeightedKind& weighted : study.kinds) {
    std::string text(name_of(weighted.kind));
    text += " at " + format_count(sweep::fault_places(weighted.kind, study, fabric).size()) + " places";
    if (study.kinds.size() > 1) text += " (" + format_percent(weighted.weight / total) + ")";
    texts.push_back(std::move(text));
  }
  return join_names(texts);
}

/// A key of the study as the result file would write it, without the line's end.
std::string text_of(const yaml::Node& faults, const char* key) {
  std::string text = yaml::emit(*faults.find(key));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Measures the cost on those of `points` that are ok, one after the other, for a few CPU seconds at most. Zeros where
/// none is ok. `job` must have faults.
FaultCost measure_faults(const sweep::SweepJob& job, std::span<const std::uint64_t> points,
                         const sweep::EvaluatorFactory& factory) {
  FaultMeter meter(job);
  const auto any = [](std::uint64_t) { return true; };
  sweep::walk_points(
      job, points, factory, [&] { return meter.enough(); }, any,
      [&](std::uint64_t id, const ParallelPlan& plan, sweep::Evaluator& evaluator) {
        const Prediction healthy = evaluator.evaluate(plan);
        if (healthy.status == Status::ok) meter.measure(id, healthy, evaluator);
      });
  return meter.cost();
}

/// Prints kinds with their places, derate, placement, samples and, for `feasible` points, the draws of all.
void print_fault_cost(std::ostream& out, const sweep::SweepJob& job, double feasible, const FaultCost& cost) {
  const sweep::FaultStudy& study = *job.study().faults;
  const yaml::Node written = sweep::write_faults(study);
  const std::string samples = format_count(job.fault_draws()->draws().size());
  TextTable table = TextTable::pairs();
  table.add_row({"kind", kinds_of(study, network::Fabric(job.study().systems.front().fabric))});
  for (const char* key : {"derate", "added_latency", "directions", "placement", "seed"}) {
    if (written.find(key) != nullptr) table.add_row({key, text_of(written, key)});
  }
  if (study.simultaneous > 1) table.add_row({"simultaneous", std::to_string(study.simultaneous)});
  table.add_row({"samples", study.target_ci ? "until the mean slowdown is known to " +
                                                  text_of(written, "target_ci") + ", " + samples + " at most"
                                            : samples});
  table.add_row({"draws", "about " + format_count(std::llround(feasible * cost.draws_per_point)) + ": " +
                              format_fixed(cost.draws_per_point, study.target_ci ? 1 : 0) +
                              " of each feasible point"});
  out << "\nfaults\n";
  table.print(out, 2);
}

/// Prints the machine's failures, the interval between checkpoints, and the share of time left for work.
void print_reliability(std::ostream& out, const sweep::Study& study) {
  const sweep::Reliability& reliability = *study.reliability;
  const Seconds failures = reliability.device_failure_interval / static_cast<double>(study.gpus);
  const Seconds interval =
      reliability.checkpoint_interval.value_or(sweep::daly_interval(reliability.checkpoint_write, failures));
  TextTable table = TextTable::pairs();
  table.add_row({"between failures", format_duration(failures.value()) + " of the machine, " +
                                         format_duration(reliability.device_failure_interval.value()) +
                                         " of a device"});
  table.add_row({"between checkpoints", format_duration(interval.value()) +
                                            (reliability.checkpoint_interval ? "" : ", the optimum")});
  table.add_row({"goodput without faults", format_percent(sweep::goodput_share(reliability, study.gpus, 0))});
  out << "\nreliability\n";
  table.print(out, 2);
}

constexpr const char* kCheckFooter =
    R"(Examples:
  shardscape check study.yaml
  shardscape check study.yaml --set gpus=128
  shardscape check study.yaml --set faults.samples=1000

Parses the study, lists its axes and counts its points. A sample spread over the space is evaluated to count
rejections by reason and to estimate the time and the file size of a sweep. Nothing is written.)";

/// A sample has this many blocks of neighbouring points, which share remembered results and compress as they do in a
/// sweep: blocks as long as those of the sweep, and of so many rows at least.
constexpr std::uint64_t kSampleBlocks = 32;
constexpr std::uint32_t kLeastSampleRows = 256;

std::string values_of(const sweep::NamedAxis& axis) {
  if (axis.list.fill) return "fill";
  std::vector<std::string> texts;
  for (const std::int32_t code : axis.list.values) texts.push_back(sweep::study_text(axis.row, code));
  return join_names(texts);
}

void print_axes(const sweep::Study& study) {
  const sweep::SpaceSpec& space = study.space;
  TextTable table = TextTable::pairs();
  for (const sweep::NamedAxis& axis : sweep::named_axes(space, study.phase()))
    table.add_row({axis.key, values_of(axis)});
  for (const sweep::HardwareAxis& axis : study.hardware) table.add_row({axis.path, join_names(axis.labels)});
  for (const std::string& constraint : space.constraints) table.add_row({"constraint", constraint});
  std::cout << "axes\n";
  table.print(std::cout, 2);
}

/// Prints each device that the study's technologies give, once.
void print_built_devices(const sweep::Study& study) {
  constexpr std::size_t kMostRows = 40;
  const auto is_technology = [](const sweep::HardwareAxis& axis) {
    return axis.path.starts_with("technology.");
  };
  if (std::ranges::none_of(study.hardware, is_technology)) return;
  TextTable table({left("device"), "SMs", "clock", "peak", "L2", "memory", "bandwidth", "power"});
  std::vector<std::vector<std::string>> rows;
  for (const System& system : study.systems) {
    const DeviceSpec& d = system.device;
    const Precision precision = format_of(study.workloads.front().precision);
    std::vector<std::string> row = {d.name,
                                    format_count(d.sm.count),
                                    format_si(d.sm.clock.value(), "Hz"),
                                    format_si(d.tensor_peak(precision).value(), "FLOP/s"),
                                    format_bytes(d.l2.capacity.value()),
                                    format_bytes(d.memory_capacity().value()),
                                    format_si(d.hbm_peak().value(), "B/s"),
                                    format_fixed(d.power.value(), 0) + " W"};
    if (std::ranges::find(rows, row) == rows.end()) rows.push_back(std::move(row));
  }
  std::cout << "\nbuilt devices";
  if (rows.size() > kMostRows) std::cout << ", the first " << kMostRows << " of " << rows.size();
  std::cout << '\n';
  rows.resize(std::min(rows.size(), kMostRows));
  for (std::vector<std::string>& row : rows) table.add_row(std::move(row));
  table.print(std::cout, 2);
}

void print_study(const sweep::Study& study, const sweep::SweepJob& job) {
  TextTable table = TextTable::pairs();
  table.add_row({"study", study.title});
  const std::string active =
      study.model.moe ? ", " + format_parameters(study.model.active_parameters()) + " active" : std::string();
  table.add_row(
      {"model", study.model_name + " (" + format_parameters(study.model.parameters()) + active + ")"});
  table.add_row({"cluster", study.cluster_name + ", " + joined(study.gpu_counts, ", ", [](std::int64_t n) {
                              return format_count(n);
                            }) + " GPUs"});
  table.add_row({"stack", study.stack_name});
  table.add_row({"phase", std::string(name_of(study.phase()))});
  table.add_row({"objectives", join_names(study.objectives)});
  if (!study.stored_rows.all())
    table.add_row({"rows", stored_rows_text(study.stored_rows, study.objectives)});
  table.print(std::cout);
  std::cout << '\n';
  print_axes(study);
  print_built_devices(study);
  std::cout << "\npoints\n";
  TextTable counts = TextTable::pairs();
  counts.add_row({"(tp, cp, pp, dp)", format_count(job.space().tuples())});
  counts.add_row({"plans", format_count(job.space().plans())});
  counts.add_row({"settings", format_count(job.space().settings()) + " (" +
                                  format_count(study.systems.size()) + " of hardware x " +
                                  format_count(study.workloads.size()) + " of workload)"});
  counts.add_row({"points", format_count(job.space().size())});
  counts.print(std::cout, 2);
}

/// The blocks to evaluate: all blocks of a small space, otherwise one from each of equally large parts, always the
/// same.
std::vector<std::uint64_t> sample_blocks(std::uint64_t blocks) {
  const std::uint64_t count = std::min(blocks, kSampleBlocks);
  std::vector<std::uint64_t> sample;
  for (std::uint64_t i = 0; i < count; ++i) {
    sample.push_back(stratified_choice(blocks, count, i, 0));
  }
  return sample;
}

/// The same points in an order that soon reaches all parts of the list. Runs of neighbours stay together, since what
/// they share is part of the cost.
std::vector<std::uint64_t> spread(const std::vector<std::uint64_t>& points) {
  constexpr std::size_t kRun = 8, kParts = 16;
  const std::size_t parts = std::clamp<std::size_t>(points.size() / kRun, 1, kParts);
  const std::size_t length = points.size() / parts + 1;
  std::vector<std::uint64_t> order;
  order.reserve(points.size());
  for (std::size_t run = 0; run < length; run += kRun) {
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t end = std::min({(part + 1) * length, part * length + run + kRun, points.size()});
      for (std::size_t i = part * length + run; i < end; ++i) order.push_back(points[i]);
    }
  }
  return order;
}

/// Bytes per feasible point in the columns about faults, which hardly compress.
double summary_bytes(const sweep::SweepJob& job) {
  double bytes = 0;
  for (const results::ColumnInfo& column : job.columns().columns()) {
    if (column.group == results::ColumnGroup::faults)
      bytes += static_cast<double>(results::size_of(column.type));
  }
  return bytes;
}

/// The study without faults, and without objectives, which may be columns about faults. Verdicts are the same, and come
/// sooner.
sweep::Study without_faults(sweep::Study study) {
  study.faults.reset();
  study.objectives.clear();
  if (!study.stored_rows.all()) study.stored_rows = {results::RowChoice::feasible, 0, {}};
  return study;
}

/// Packed bytes of the rows that a sweep would store of a block.
double stored_bytes(const results::EncodedBlock& block, const results::ColumnTable& table) {
  double bytes = 0;
  for (const auto& chunk : block.chunks) bytes += static_cast<double>(chunk.size());
  results::ChunkPacker packer;
  for (std::size_t c = 0; c < block.candidates.columns.size(); ++c) {
    const std::size_t width = results::size_of(table.columns()[c].type);
    bytes += static_cast<double>(packer.pack(block.candidates.columns[c], width).size());
  }
  return bytes;
}

/// An upper bound of the share of the feasible points that become rows.
double stored_share(const results::StoredRows& rows, double feasible) {
  if (rows.choice != results::RowChoice::top) return 1;
  return std::min(1.0, static_cast<double>(rows.count) / std::max(feasible, 1.0));
}

/// Bytes of the file that rows and fault samples do not take.
double bytes_beside_rows(const sweep::SweepJob& job, const results::RunInfo& run, double feasible,
                         double draws) {
  const results::Manifest manifest = job.manifest(run);
  const double points = static_cast<double>(job.space().size());
  const double rows = job.stored_rows().all() ? points : stored_share(job.stored_rows(), feasible) * feasible;
  const auto count = [](double number) { return static_cast<std::uint64_t>(std::llround(number)); };
  return static_cast<double>(results::bytes_beside_chunks(manifest, count(rows), count(draws)));
}

/// Prints the cost of searches for placements of `feasible` points; returns their CPU seconds in a sweep.
double print_searches(const sweep::SweepJob& job, double feasible, const std::vector<std::uint64_t>& points,
                      const sweep::EvaluatorFactory& factory) {
  const double share = sweep::searched_share(job.study());
  if (share <= 0) return 0;
  const sweep::SearchCost cost = sweep::measure_searches(job, points, factory);
  const double searches = share * feasible;
  std::cout << "\nplacements\n";
  TextTable table = TextTable::pairs();
  table.add_row(
      {"searches", fmt::format("about {} of {} of CPU each, one for each feasible point",
                               format_count(std::llround(searches)), format_duration(cost.seconds))});
  table.print(std::cout, 2);
  return searches * cost.seconds;
}

void print_estimates(const sweep::SweepJob& job, const CommonOptions& common) {
  const std::uint64_t size = job.space().size();
  const auto layout =
      results::BlockLayout::whole(size, std::max(job.layout().rows_per_block, kLeastSampleRows));
  const sweep::EvaluatorFactory factory =
      sweep::simulator_factory({.reference = common.reference, .mode = job.study().mode});
  const sweep::Study plain = without_faults(job.study());
  const sweep::SweepJob plain_job(plain, job);
  const sweep::EvaluatorFactory verdicts = sweep::on_plain_order(factory);
  sweep::BlockWorker worker(plain_job, layout, verdicts);
  sweep::Tally tally;
  std::uint64_t rows = 0;
  double bytes = 0;
  std::vector<std::uint64_t> points;
  for (const std::uint64_t block : sample_blocks(layout.blocks.count)) {
    const sweep::FinishedBlock finished = worker.run(block);
    add(tally, finished.tally, results::Better::smaller);
    rows += finished.block.rows;
    bytes += stored_bytes(finished.block, plain_job.columns());
    for (std::uint32_t i = 0; i < finished.block.rows; ++i) points.push_back(layout.first_row(block) + i);
  }
  std::cout << "\nverdicts on "
            << (rows < size ? "a sample of "
                : size == 1 ? ""
                            : "all ")
            << counted(rows, "point") << '\n';
  print_verdicts(std::cout, verdict_counts(tally.by_status, tally.by_reason, rows,
                                           job.columns().find("reason")->meanings));
  const double scale = static_cast<double>(size) / static_cast<double>(rows);
  double cpu = scale * (worker.evaluate_seconds() + worker.encode_seconds()), fault_bytes = 0, draws = 0;
  bytes *= scale;
  const double feasible = scale * static_cast<double>(tally.count(Status::ok));
  const double share = stored_share(job.stored_rows(), feasible);
  bytes *= share;
  cpu += print_searches(job, feasible, spread(points), factory);
  if (job.study().reliability) print_reliability(std::cout, job.study());
  if (job.study().faults) {
    const FaultCost cost = measure_faults(job, spread(points), factory);
    print_fault_cost(std::cout, job, feasible, cost);
    cpu += feasible * cost.draws_per_point * cost.seconds_per_draw;
    draws = share * feasible * cost.draws_per_point;
    fault_bytes = share * feasible * (cost.draws_per_point * cost.bytes_per_draw + summary_bytes(job));
  }
  const int threads = tbb::info::default_concurrency();
  bytes += bytes_beside_rows(job, run_info(common, threads), feasible, draws);
  std::cout << "\na sweep takes about " << format_duration(cpu / threads) << " on " << threads << " threads ("
            << format_duration(cpu) << " of CPU) and writes "
            << (job.stored_rows().choice == results::RowChoice::pareto ? "less than " : "about ")
            << format_bytes(bytes + fault_bytes);
  if (fault_bytes > 0) std::cout << ", " << format_bytes(fault_bytes) << " of it on faults";
  std::cout << "\n";
}

int run_check(const StudyArguments& arguments, const CommonOptions& common) {
  const sweep::Study study = load(arguments, common);
  const sweep::SweepJob job(study);
  if (job.space().problem().empty()) print_study(study, job);
  require_points(job);
  print_estimates(job, common);
  return kDone;
}

}  // namespace

void add_check_command(const Program& program) {
  const auto [command, arguments] =
      program.add("check", "Parse a study, count its points and rejections, estimate time and file size",
                  kCheckFooter, run_check);
  add_study_arguments(*command, *arguments);
}

}  // namespace shardscape::cli
