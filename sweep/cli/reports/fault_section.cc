// Estimates what the faults of a study cost a sweep, by timing draws of points for a few seconds, and prints the
// section of `check` about them.
#include "sweep/cli/reports/fault_section.h"

#include <time.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/suggest.h"
#include "engine/network/fabric/fabric.h"
#include "results_schema/rows/sample_size.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/runner/search_cost.h"
#include "sweep/study/faults_parser.h"

namespace shardscape::cli {

namespace {

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

}  // namespace

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

void print_faults(std::ostream& out, const sweep::SweepJob& job, double feasible, const FaultCost& cost) {
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

}  // namespace shardscape::cli
