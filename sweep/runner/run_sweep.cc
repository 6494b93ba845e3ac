// The pipeline of a sweep: a source of block numbers, parallel evaluation and encoding, and a writer that takes blocks
// in order, with a token per block in flight.
#include "sweep/runner/run_sweep.h"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <chrono>
#include <utility>

#include "engine/base/check.h"
#include "sweep/runner/block_worker.h"

namespace shardscape::sweep {

namespace {

using Clock = std::chrono::steady_clock;
using Workers = tbb::enumerable_thread_specific<BlockWorker>;

/// Blocks in flight per thread: enough that an uneven block does not starve the others behind the in-order
/// writer.
constexpr std::size_t kTokensPerThread = 4;

/// Gives out the ranges one after the other.
NextBlocks one_by_one(std::vector<results::BlockRange> ranges) {
  return [ranges = std::move(ranges), next = std::size_t{0}]() mutable -> std::optional<results::BlockRange> {
    if (next == ranges.size()) return std::nullopt;
    return ranges[next++];
  };
}

bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

/// The source stage: gives the numbers of blocks to compute.
class BlockSource {
 public:
  BlockSource(NextBlocks next, const SweepOptions& options) : next_(std::move(next)), options_(options) {}

  std::uint64_t operator()(tbb::flow_control& control) {
    const bool stopped = is_set(options_.stop) || is_set(options_.stop_within);
    while (!stopped && used_ == range_.count) {
      const std::optional<results::BlockRange> next = next_();
      if (!next) break;
      range_ = *next;
      used_ = 0;
    }
    if (stopped || used_ == range_.count) {
      control.stop();
      return 0;
    }
    return range_.first + used_++;
  }

 private:
  NextBlocks next_;
  const SweepOptions& options_;
  results::BlockRange range_;
  std::uint64_t used_ = 0;
};

/// The writer stage: gives blocks to the segment writer in order, and informs the observer.
class BlockSink {
 public:
  BlockSink(const SweepJob& job, const results::SegmentStore& store, const SweepOptions& options)
      : writer_(store, options.seal), observer_(options.observer) {
    better_ = better_of(job);
    outcome_.progress.rows_total = job.layout().rows();
    outcome_.progress.rows_before = store.sealed_rows();
  }

  void take(FinishedBlock&& finished) {
    if (!finished.whole) return;
    const Clock::time_point now = Clock::now();
    SweepProgress& progress = outcome_.progress;
    progress.rows_evaluated += finished.block.rows;
    add(progress.tally, finished.tally, better_);
    writer_.append(std::move(finished.block), now);
    outcome_.times.write += std::chrono::duration<double>(Clock::now() - now).count();
    if (observer_) observer_(progress);
  }

  [[nodiscard]] const results::RowSelector* selector() const { return writer_.selector(); }

  SweepOutcome finish() {
    const Clock::time_point start = Clock::now();
    writer_.seal();
    outcome_.times.write += std::chrono::duration<double>(Clock::now() - start).count();
    outcome_.complete = outcome_.progress.rows_done() == outcome_.progress.rows_total;
    return outcome_;
  }

 private:
  results::SegmentWriter writer_;
  const std::function<void(const SweepProgress&)>& observer_;
  results::Better better_ = results::Better::smaller;
  SweepOutcome outcome_;
};

/// A block on its way through the pipeline.
struct Slot {
  std::uint64_t number = 0;
  FinishedBlock finished;
};

}  // namespace

SweepOutcome run_sweep(const SweepJob& job, const results::SegmentStore& store, const SweepOptions& options) {
  SHARDSCAPE_CHECK(options.threads >= 1, options.threads);
  const auto threads = static_cast<std::size_t>(options.threads);
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(options.threads);
  BlockSource source(options.next ? options.next : one_by_one(store.missing()), options);
  BlockSink sink(job, store, options);
  Workers workers([&] {
    return BlockWorker(job, job.layout(), options.evaluator, options.known, sink.selector(),
                       options.go_on_sampling,
                       options.stop_within != nullptr ? options.stop_within : options.stop);
  });

  // The data of a token lie in a slot. Tokens leave in the order in which they came, and at most `slots.size()` are
  // under way, so that a token finds the slot of its predecessor free.
  std::vector<Slot> slots(kTokensPerThread * threads);
  std::uint64_t issued = 0;

  using enum tbb::filter_mode;
  const auto next = tbb::make_filter<void, std::uint64_t>(serial_in_order, [&](tbb::flow_control& flow) {
    slots[issued % slots.size()].number = source(flow);
    return issued++;
  });
  const auto evaluate = tbb::make_filter<std::uint64_t, std::uint64_t>(parallel, [&](std::uint64_t token) {
    Slot& slot = slots[token % slots.size()];
    slot.finished = workers.local().run(slot.number);
    return token;
  });
  const auto write = tbb::make_filter<std::uint64_t, void>(serial_in_order, [&](std::uint64_t token) {
    sink.take(std::move(slots[token % slots.size()].finished));
  });
  arena.execute([&] { tbb::parallel_pipeline(slots.size(), next & evaluate & write); });

  SweepOutcome outcome = sink.finish();
  for (const BlockWorker& worker : workers) {
    outcome.times.evaluate += worker.evaluate_seconds();
    outcome.times.encode += worker.encode_seconds();
  }
  return outcome;
}

}  // namespace shardscape::sweep
