// Do the fast pipeline evaluators agree with the plain one, and that one with a longest-path search that
// knows neither? Random uneven stages and boundaries, kinds and lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/schedule/pipeline_memo.h"
#include "tests/support/seeds.h"
#include "tests/support/slow_pipeline.h"

namespace shardscape::schedule {
namespace {

struct Case {
  PipelineShape shape;
  std::vector<StageTime> times;
  Transfer transfer;
};

std::int32_t between(CounterRng& random, std::int32_t low, std::int32_t high) {
  return low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// Times of four families: all equal; one odd stage; small integers (many ties); any real numbers.
std::vector<StageTime> random_times(CounterRng& random, std::int32_t stages) {
  std::vector<StageTime> times(static_cast<std::size_t>(stages), {random.uniform(), 2 * random.uniform(), 0});
  const std::uint64_t family = random.below(4);
  if (family == 1) times[random.below(times.size())] = {2 * random.uniform(), 3 * random.uniform(), 0};
  for (StageTime& time : times) {
    if (family == 2) {
      time = {static_cast<double>(random.below(4)), static_cast<double>(random.below(5)), 0};
    } else if (family == 3) {
      time = {random.uniform(), 2 * random.uniform(), 0};
    }
    time.weight = random.below(3) == 0 ? 0.5 * time.backward : random.uniform() * time.backward;
  }
  return times;
}

/// Equal stages of unlike chunks, some of which hold nothing.
void random_chunks(CounterRng& random, Case& c) {
  const auto each = static_cast<std::size_t>(c.shape.virtual_stages);
  for (std::size_t chunk = 0; chunk < each; ++chunk) {
    const double layers = between(random, 0, 3);
    for (std::size_t s = 0; s < c.times.size() / each; ++s)
      c.times[s * each + chunk] = {layers, 2 * layers, 0.8 * layers, 0};
  }
}

/// One number for all boundaries; few distinct ones, as inside and between nodes; or each its own.
Transfer random_transfer(CounterRng& random, std::int32_t stages) {
  const std::uint64_t size = random.below(4);
  const auto message = [&] {
    if (size == 3) return static_cast<double>(random.below(3));
    return size == 0 ? 0 : size == 1 ? 3 * random.uniform() : 0.2 * random.uniform();
  };
  Transfer transfer(message(), random.below(2) == 0);
  const std::uint64_t family = random.below(3);
  if (family == 0) return transfer;
  const double near = transfer.seconds.front(), far = 5 * near;
  transfer.seconds.assign(static_cast<std::size_t>(stages), near);
  for (double& boundary : transfer.seconds)
    boundary = family == 2 ? message() : random.below(3) == 0 ? far : near;
  if (random.below(2) == 0) return transfer;
  transfer.back = transfer.seconds;
  for (double& boundary : transfer.back)
    if (random.below(3) == 0) boundary *= 3;
  return transfer;
}

Case random_case(CounterRng& random, std::int32_t most_stages, std::int32_t most_microbatches) {
  Case c;
  const std::uint64_t kind = random.below(6);
  c.shape.stages = between(random, kind == 2 ? 2 : 1, most_stages);
  c.shape.microbatches = between(random, 1, most_microbatches);
  c.shape.kind = static_cast<ScheduleKind>(kind == 5 ? 2 : kind);
  c.shape.overlaps = kind == 5;
  if (kind == 5 && c.shape.stages == 1) c.shape.kind = ScheduleKind::one_f_one_b;
  if (c.shape.kind == ScheduleKind::dualpipe) {
    c.shape.stages = std::max(2, c.shape.stages / 2 * 2);
    c.shape.microbatches = 2 * std::max(c.shape.stages, c.shape.microbatches / 2);
    c.shape.virtual_stages = 2;
  }
  if (c.shape.kind == ScheduleKind::interleaved) {
    c.shape.virtual_stages = between(random, 2, 4);
    const std::int32_t groups = std::max(1, c.shape.microbatches / c.shape.stages);
    c.shape.microbatches = groups * c.shape.stages;
  }
  const bool by_chunk = c.shape.both_ways() || (c.shape.virtual_stages > 1 && random.below(3) > 0);
  c.times = random_times(random, by_chunk ? c.shape.virtual_stages * c.shape.stages : c.shape.stages);
  if (by_chunk && random.below(3) == 0) random_chunks(random, c);
  for (StageTime& time : c.times) {
    time.hidden = random.below(2) == 0 ? 0 : random.uniform() * time.forward;
    time.hidden_rarely = random.below(2) == 0 ? 0 : random.uniform() * time.forward;
    if (c.shape.both_ways()) time.apart = random.below(2) == 0 ? 0 : random.uniform() * time.weight;
  }
  c.transfer = random_transfer(random, c.shape.stages);
  return c;
}

std::string text(const Case& c) {
  std::string result = std::string(name_of(c.shape.kind)) + " p=" + std::to_string(c.shape.stages) +
                       " v=" + std::to_string(c.shape.virtual_stages) +
                       " m=" + std::to_string(c.shape.microbatches) + (c.shape.overlaps ? " overlaps" : "") +
                       " t=" + testing::PrintToString(c.transfer.seconds) + " back " +
                       testing::PrintToString(c.transfer.back) + (c.transfer.blocking ? " blocking" : "");
  for (const StageTime& time : c.times) {
    result += " (" + std::to_string(time.forward) + ", " + std::to_string(time.backward) + ", " +
              std::to_string(time.weight) + ", " + std::to_string(time.hidden) + ", " +
              std::to_string(time.hidden_rarely) + ", " + std::to_string(time.apart) + ")";
  }
  return result;
}

template <class Actual>
bool same(const Actual& actual, const std::vector<double>& expected) {
  return std::ranges::equal(actual, expected,
                            [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1e-9, b); });
}

TEST(PipelineProperty, RunInOrderIsTheLongestPath) {
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    CounterRng random(seed, 1);
    const Case c = random_case(random, 5, 12);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    const test::SlowPipeline slow = test::slow_pipeline(c.shape, c.times, c.transfer);
    const std::vector<double> ends = run_in_order(c.shape, c.times, c.transfer);
    EXPECT_TRUE(same(ends, slow.stage_end))
        << testing::PrintToString(ends) << " versus " << testing::PrintToString(slow.stage_end);
  }
}

TEST(PipelineProperty, TimerAndMemoAreRunInOrder) {
  PipelineTimer timer;
  PipelineMemo memo;
  for (std::uint64_t seed = 0; seed < test::seeds(4000); ++seed) {
    CounterRng random(seed, 2);
    const Case c = seed % 10 == 0 ? random_case(random, 9, 400) : random_case(random, 8, 48);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    std::vector<PipelineSpan> spans;
    const std::vector<double> expected = run_in_order(c.shape, c.times, c.transfer, &spans);
    const std::vector<double> chunks = chunk_ends(c.shape, spans, c.transfer);
    const std::vector<double> free = run_in_order(c.shape, c.times, {0, c.transfer.blocking});
    const PipelineEnds fast = timer.run(c.shape, c.times, c.transfer);
    EXPECT_TRUE(same(fast.stages, expected))
        << testing::PrintToString(std::vector(fast.stages.begin(), fast.stages.end())) << " versus "
        << testing::PrintToString(expected);
    EXPECT_TRUE(same(fast.chunks, chunks));
    EXPECT_TRUE(same(fast.free, free))
        << testing::PrintToString(std::vector(fast.free.begin(), fast.free.end())) << " versus "
        << testing::PrintToString(free);
    for (int time = 0; time < 2; ++time) {
      const PipelineEnds kept = memo.run(c.shape, c.times, c.transfer);
      EXPECT_TRUE(same(kept.stages, expected) && same(kept.chunks, chunks) && same(kept.free, free));
    }
  }
}

TEST(PipelineProperty, ChunksOfEqualTimesAreTheirStage) {
  PipelineTimer timer;
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    CounterRng random(seed, 7);
    Case c = random_case(random, 8, 100);
    if (c.shape.kind != ScheduleKind::interleaved ||
        c.times.size() != static_cast<std::size_t>(c.shape.stages))
      continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    const auto stages = timer.run(c.shape, c.times, c.transfer).stages;
    const std::vector<double> expected(stages.begin(), stages.end());
    std::vector<StageTime> by_chunk;
    for (const StageTime& time : c.times)
      by_chunk.insert(by_chunk.end(), static_cast<std::size_t>(c.shape.virtual_stages), time);
    EXPECT_TRUE(same(timer.run(c.shape, by_chunk, c.transfer).stages, expected));
  }
}

TEST(PipelineProperty, TheFirstPartnerIsWhatMostForwardsOfAChunkRunWith) {
  std::vector<PipelineOperation> order;
  for (std::uint64_t seed = 0; seed < test::seeds(100); ++seed) {
    CounterRng random(seed, 8);
    const PipelineShape shape{ScheduleKind::interleaved, between(random, 1, 7), between(random, 2, 4), 0,
                              true};
    PipelineShape long_one = shape;
    long_one.microbatches = 20 * shape.stages;
    for (std::int32_t s = 0; s < shape.stages; ++s) {
      stage_order(long_one, s, order);
      std::map<std::pair<std::int32_t, std::int32_t>, int> met;
      for (std::size_t i = 0; i < order.size(); ++i)
        if (order[i].paired) ++met[{order[i].chunk, order[i + 1].chunk}];
      for (std::int32_t chunk = 0; chunk < shape.virtual_stages; ++chunk) {
        const auto count = [&](std::int32_t backward) { return met[std::pair(chunk, backward)]; };
        // The ends of the steady part may leave a run of S more of one than of another.
        for (std::int32_t other = 0; other < shape.virtual_stages; ++other)
          EXPECT_GE(count(partners(long_one, s, chunk)[0].chunk) + shape.stages, count(other))
              << "seed " << seed << " stage " << s << " chunk " << chunk;
      }
    }
  }
}

TEST(PipelineProperty, PeriodsThatMessagesMakeAreSkippedExactly) {
  // Where all stages are alike, a microbatch's way down the pipeline and back sets the pace: the schedule repeats
  // itself after as many microbatches as there are stages, not after one.
  PipelineTimer timer;
  for (std::uint64_t seed = 0; seed < test::seeds(100); ++seed) {
    CounterRng random(seed, 5);
    Case c = random_case(random, 24, 600);
    const double work = 0.5 + random.uniform();
    std::ranges::fill(c.times, StageTime{work, 2 * work, 0.8 * work});
    c.transfer = Transfer(random.uniform() * work, random.below(2) == 0);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    const std::vector<double> expected = run_in_order(c.shape, c.times, c.transfer);
    const PipelineEnds fast = timer.run(c.shape, c.times, c.transfer);
    ASSERT_EQ(fast.stages.size(), expected.size());
    for (std::size_t s = 0; s < expected.size(); ++s)
      EXPECT_NEAR(fast.stages[s], expected[s], 1e-12 * expected[s]);
  }
}

TEST(PipelineProperty, QuickEndsMakeShorterPeriods) {
  // Where the first stage or the last is quick, the way between the others sets the pace, and is shorter by one or two
  // microbatches. The pipeline without messages runs along and has a period of its own.
  PipelineTimer timer;
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    CounterRng random(seed, 6);
    Case c = random_case(random, 24, 600);
    const double work = 0.5 + random.uniform();
    std::ranges::fill(c.times, StageTime{work, 2 * work, 0.8 * work});
    for (StageTime* const end : {&c.times.front(), &c.times.back()}) {
      const double share = random.below(3) == 0 ? 1 + 0.2 * random.uniform() : random.uniform();
      *end = {share * work, 2 * share * work, 0.8 * share * work};
    }
    c.transfer = Transfer(0.1 * random.uniform() * work, random.below(2) == 0);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    const std::vector<double> expected = run_in_order(c.shape, c.times, c.transfer);
    const std::vector<double> free = run_in_order(c.shape, c.times, {0, c.transfer.blocking});
    const PipelineEnds fast = timer.run(c.shape, c.times, c.transfer);
    ASSERT_EQ(fast.stages.size(), expected.size());
    ASSERT_EQ(fast.free.size(), free.size());
    for (std::size_t s = 0; s < expected.size(); ++s) {
      EXPECT_NEAR(fast.stages[s], expected[s], 1e-12 * expected[s]);
      EXPECT_NEAR(fast.free[s], free[s], 1e-12 * free[s]);
    }
  }
}

TEST(PipelineProperty, NearlyEqualStagesDoNotLookPeriodicTooSoon) {
  // A stage slower than the others by one part in 10^3 .. 10^11 takes over only slowly; skipped periods must
  // carry the slow one's rate.
  PipelineTimer timer;
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    CounterRng random(seed, 3);
    Case c = random_case(random, 6, 600);
    const double base = 0.5 + random.uniform();
    std::ranges::fill(c.times, StageTime{base, 2 * base, 0.8 * base});
    c.times[random.below(c.times.size())].backward *=
        1 + std::pow(10.0, -3 - static_cast<double>(random.below(9)));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    EXPECT_TRUE(
        same(timer.run(c.shape, c.times, c.transfer).stages, run_in_order(c.shape, c.times, c.transfer)));
  }
}

TEST(PipelineProperty, MoreWorkOrSlowerTransfersNeverHelp) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    CounterRng random(seed, 4);
    Case c = random_case(random, 6, 20);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    PipelineTimer timer;
    const auto first = timer.run(c.shape, c.times, c.transfer).stages;
    const std::vector<double> before(first.begin(), first.end());
    const auto not_faster = [&](const Case& slower) {
      const auto after = timer.run(slower.shape, slower.times, slower.transfer).stages;
      for (std::size_t s = 0; s < before.size(); ++s) EXPECT_GE(after[s], before[s] * (1 - 1e-12)) << s;
    };
    Case slower = c;
    slower.transfer.seconds[random.below(slower.transfer.seconds.size())] += random.uniform();
    not_faster(slower);
    if (!c.transfer.back.empty()) {
      slower = c;
      slower.transfer.back[random.below(slower.transfer.back.size())] += random.uniform();
      not_faster(slower);
    }
    slower = c;
    slower.transfer.blocking = true;
    not_faster(slower);
    slower = c;
    slower.times[random.below(slower.times.size())].forward += random.uniform();
    not_faster(slower);
  }
}

TEST(PipelineProperty, TimesScale) {
  // All times and transfers k-fold: the ends k-fold.
  PipelineTimer timer;
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    CounterRng random(seed, 5);
    Case c = random_case(random, 6, 100);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(c));
    const auto first = timer.run(c.shape, c.times, c.transfer).stages;
    std::vector<double> expected(first.begin(), first.end());
    for (double& end : expected) end *= 1e-3;
    for (StageTime& time : c.times) {
      time = {1e-3 * time.forward, 1e-3 * time.backward,      1e-3 * time.weight,
              1e-3 * time.hidden,  1e-3 * time.hidden_rarely, 1e-3 * time.apart};
    }
    for (double& boundary : c.transfer.seconds) boundary *= 1e-3;
    for (double& boundary : c.transfer.back) boundary *= 1e-3;
    EXPECT_TRUE(same(timer.run(c.shape, c.times, c.transfer).stages, expected));
  }
}

}  // namespace
}  // namespace shardscape::schedule
