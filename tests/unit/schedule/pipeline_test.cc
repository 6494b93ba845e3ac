// Are the schedules those of the papers: complete orders, the published bubbles, the stated memory?
#include "engine/schedule/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/schedule/pipeline_memo.h"

namespace shardscape::schedule {
namespace {

/// Every shape of a small range; interleaved only where microbatches % stages == 0.
std::vector<PipelineShape> small_shapes() {
  std::vector<PipelineShape> shapes;
  for (std::int32_t p = 1; p <= 6; ++p) {
    for (std::int32_t m = 1; m <= 14; ++m) {
      shapes.push_back({ScheduleKind::gpipe, p, 1, m});
      shapes.push_back({ScheduleKind::one_f_one_b, p, 1, m});
      shapes.push_back({ScheduleKind::zero_bubble, p, 1, m});
      for (std::int32_t v = 2; v <= 4 && p >= 2 && m % p == 0; ++v) {
        shapes.push_back({ScheduleKind::interleaved, p, v, m});
      }
    }
  }
  return shapes;
}

/// Number of pairs of a chunk's forwards.
std::int32_t all_pairs(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk) {
  const auto [most, rare] = partners(shape, stage, chunk);
  return most.pairs + rare.pairs;
}

/// Shapes whose forwards and backwards run in pairs.
std::vector<PipelineShape> paired_shapes() {
  std::vector<PipelineShape> shapes;
  for (std::int32_t p = 1; p <= 8; ++p) {
    for (std::int32_t m = 1; m <= 20; ++m) {
      if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p) shapes.push_back({ScheduleKind::dualpipe, p, 2, m});
      if (p == 1) shapes.push_back({ScheduleKind::one_f_one_b, 1, 1, m, true});
      for (std::int32_t v = 2; v <= 4 && p >= 2 && m % p == 0; ++v)
        shapes.push_back({ScheduleKind::interleaved, p, v, m, true});
    }
  }
  return shapes;
}

std::vector<PipelineShape> all_shapes() {
  std::vector<PipelineShape> shapes = small_shapes();
  for (const PipelineShape& shape : paired_shapes()) shapes.push_back(shape);
  return shapes;
}

std::string text(const PipelineShape& shape) {
  return std::string(name_of(shape.kind)) + " p=" + std::to_string(shape.stages) +
         " v=" + std::to_string(shape.virtual_stages) + " m=" + std::to_string(shape.microbatches);
}

TEST(StageOrder, EveryOperationOnceForwardFirst) {
  for (const PipelineShape& shape : all_shapes()) {
    SCOPED_TRACE(text(shape));
    for (std::int32_t s = 0; s < shape.stages; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      std::set<std::pair<std::int32_t, std::int32_t>> forward, backward, weight, cut;
      for (const PipelineOperation& op : order) {
        const std::pair work(op.chunk, op.microbatch);
        EXPECT_TRUE(op.chunk >= 0 && op.chunk < shape.virtual_stages);
        EXPECT_TRUE(op.microbatch >= 0 && op.microbatch < shape.per_chunk());
        EXPECT_TRUE((op.weight ? weight : op.backward ? backward : forward).insert(work).second);
        if (op.backward) {
          EXPECT_TRUE(forward.contains(work));
        }
        if (op.cut) cut.insert(work);
        if (op.weight) {
          EXPECT_TRUE(op.backward && cut.contains(work));
        }
      }
      const auto total = static_cast<std::size_t>(shape.virtual_stages * shape.per_chunk());
      EXPECT_EQ(forward.size(), total);
      EXPECT_EQ(backward.size(), total);
      EXPECT_EQ(weight, cut);
      if (!shape.both_ways()) {
        EXPECT_EQ(weight.size(), shape.kind == ScheduleKind::zero_bubble ? total : 0);
      }
    }
  }
}

// What the table says of a schedule against its own order lists, so that neither can be mended alone.
TEST(StageOrder, IsWhatTheTableSays) {
  for (const PipelineShape& shape : all_shapes()) {
    SCOPED_TRACE(text(shape));
    const ScheduleRow& row = row_of(shape.kind);
    EXPECT_TRUE(row.divides == nullptr || row.divides(shape.stages, shape.microbatches));
    std::set<std::int32_t> heads;  // stages that begin with the first part of the model
    bool all_cut = true, some_cut = false, forwards_first = true;
    for (std::int32_t s = 0; s < shape.stages; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      bool turned = false;
      for (const PipelineOperation& op : order) {
        turned = turned || op.backward;
        if (turned && !op.backward) forwards_first = false;
        if (op.backward && !op.weight) {
          all_cut = all_cut && op.cut;
          some_cut = some_cut || op.cut;
        }
        if (!op.backward && shape.part(s, op.chunk) == 0) heads.insert(s);
      }
    }
    EXPECT_EQ(row.cuts, all_cut);
    EXPECT_EQ(row.cuts || row.both_ways, some_cut);
    EXPECT_EQ(heads.size(), row.both_ways ? 2U : 1U);
    EXPECT_TRUE(!row.forwards_first || forwards_first);
    EXPECT_TRUE(row.chunks || row.both_ways || shape.virtual_stages == 1);
  }
}

TEST(InFlight, IsThePeakOfTheWalk) {
  for (const PipelineShape& shape : all_shapes()) {
    SCOPED_TRACE(text(shape));
    for (std::int32_t s = 0; s < shape.stages; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      std::int32_t held = 0, peak = 0;
      for (const PipelineOperation& op : order) {
        if (!op.weight) peak = std::max(peak, held += op.backward ? -1 : 1);
      }
      EXPECT_EQ(held, 0);
      EXPECT_EQ(in_flight(shape, s), peak) << s;
    }
  }
}

TEST(InFlight, PeaksAreThoseOfTheWalk) {
  // Walks the order and adds up a per microbatch in flight and b per one that is put off whenever a backward
  // begins, for several a : b.
  for (const PipelineShape& shape : all_shapes()) {
    SCOPED_TRACE(text(shape));
    for (std::int32_t s = 0; s < shape.stages; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      for (const auto& [a, b] :
           {std::pair(1.0, 0.0), std::pair(1.0, 0.9), std::pair(1.0, 2.5), std::pair(0.0, 1.0)}) {
        double held = 0, peak = 0;
        for (const PipelineOperation& op : order) {
          const double after = op.cut ? b : 0;
          if (op.backward && !op.weight) peak = std::max(peak, held);
          held += op.weight ? -b : op.backward ? after - a : a;
        }
        EXPECT_NEAR(held, 0, 1e-9);
        double claimed = 0;
        for (const HeldMicrobatches& moment : peaks(shape, s)) {
          claimed = std::max(claimed, a * moment.in_flight + b * moment.put_off);
        }
        EXPECT_NEAR(claimed, peak, 1e-9) << "stage " << s << " a " << a << " b " << b;
      }
    }
  }
}

TEST(InFlight, DualPipesChunksHoldWhatTheirWalkDoes) {
  // By chunk: every moment is one of the walk, together they are peaks(), and with chunks of unlike size, of which only
  // the input gradients wait for nothing, none of the walk holds more.
  for (std::int32_t p = 2; p <= 16; p += 2) {
    const PipelineShape shape{ScheduleKind::dualpipe, p, 2, 2 * p + 2};
    for (std::int32_t s = 0; s < p; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      using Chunks = std::array<std::pair<std::int32_t, std::int32_t>, 2>;  // in flight, put off
      std::vector<Chunks> walk;
      Chunks held{};
      for (const PipelineOperation& op : order) {
        auto& [in_flight, put_off] = held[static_cast<std::size_t>(op.chunk)];
        if (op.backward && !op.weight) walk.push_back(held);
        if (op.weight) {
          --put_off;
        } else {
          in_flight += op.backward ? -1 : 1;
          if (op.cut) ++put_off;
        }
      }
      const auto claimed = peaks_by_chunk(shape, s);
      const auto sums = peaks(shape, s);
      for (std::size_t i = 0; i < claimed.size(); ++i) {
        Chunks moment;
        for (std::size_t c = 0; c < 2; ++c) moment[c] = {claimed[i][c].in_flight, claimed[i][c].put_off};
        EXPECT_NE(std::ranges::find(walk, moment), walk.end()) << p << ' ' << s << ' ' << i;
        EXPECT_EQ(moment[0].first + moment[1].first, sums[i].in_flight);
        EXPECT_EQ(moment[0].second + moment[1].second, sums[i].put_off);
      }
      for (const Chunks& moment : walk) {
        for (std::size_t c = 0; c < 2; ++c) EXPECT_LE(moment[c].first, claimed[0][c].in_flight);
      }
    }
  }
}

TEST(StageOrder, DualPipeIsThatOfThePublishedCode) {
  // DeepSeek's dualpipe.py, 4 ranks and 8 microbatches, four from each end, its steps walked by hand. Rank 0, the
  // outer one of two in its half: 2 forwards; one of each direction; a cut backward, its weight gradient, a
  // forward; a main round of 2 pairs; a backward and a pair; 2 backwards, the second one cut; a weight gradient and
  // a cut backward; a weight gradient.
  const auto words = [](std::int32_t stage) {
    std::vector<PipelineOperation> order;
    stage_order({ScheduleKind::dualpipe, 4, 2, 8}, stage, order);
    std::string line;
    for (const PipelineOperation& op : order) {
      line += op.weight ? "W" : op.cut ? "I" : op.backward ? "B" : "F";
      line += std::to_string(op.microbatch) + (op.chunk == 0 ? "a" : "b") + (op.paired ? "+" : " ");
    }
    return line;
  };
  EXPECT_EQ(words(0), "F0a F1a F2a F0b I0b W0b F1b F3a+B1b F2b+B0a B2b F3b+B1a B3b I2a W2a I3a W3a ");
  EXPECT_EQ(words(1), "F0a F0b F1a F1b F2a B0b F2b+B0a F3a+B1b F3b+B1a B2b B2a I3b I3a W3b W3a ");
  // The mirror has the directions exchanged.
  for (const std::int32_t stage : {0, 1}) {
    std::string mirrored = words(3 - stage);
    for (char& c : mirrored) c = c == 'a' ? 'b' : c == 'b' ? 'a' : c;
    EXPECT_EQ(mirrored, words(stage));
  }
}

TEST(StageOrder, PairsAreOfDifferentMicrobatches) {
  for (const PipelineShape& shape : paired_shapes()) {
    SCOPED_TRACE(text(shape));
    for (std::int32_t s = 0; s < shape.stages; ++s) {
      std::vector<PipelineOperation> order;
      stage_order(shape, s, order);
      std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t>
          count;  // key: chunks of forward and backward
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (!order[i].paired) continue;
        ASSERT_LT(i + 1, order.size());
        const PipelineOperation& other = order[i + 1];
        EXPECT_TRUE(!order[i].backward && other.backward && !other.weight && !other.cut && !other.paired);
        EXPECT_TRUE(order[i].chunk != other.chunk || order[i].microbatch != other.microbatch);
        EXPECT_EQ(partners(shape, s, order[i].chunk)[order[i].rare ? 1 : 0].chunk, other.chunk);
        ++count[{order[i].chunk, other.chunk}];
      }
      for (std::int32_t c = 0; c < shape.virtual_stages; ++c) {
        for (const Partner& partner : partners(shape, s, c)) {
          const std::pair key(c, partner.chunk);
          const bool either = partners(shape, s, c)[0].chunk == partners(shape, s, c)[1].chunk;
          EXPECT_EQ(either ? all_pairs(shape, s, c) : partner.pairs, count[key]) << s << ' ' << c;
        }
      }
    }
  }
}

TEST(InFlight, DualPipeHoldsOneMoreThanThereAreStages) {
  // DeepSeek-V3 report, table 2: activations of PP + 1 microbatches on every rank, parameters twice.
  for (std::int32_t p = 2; p <= 16; p += 2) {
    for (std::int32_t s = 0; s < p; ++s)
      EXPECT_EQ(in_flight({ScheduleKind::dualpipe, p, 2, 4 * p}, s), p + 1);
  }
}

TEST(Bubble, DualPipeIsThatOfTheReport) {
  // DeepSeek-V3 report, table 2: (PP / 2 - 1) (F&B + B - 3 W), where F = W = B / 2 and F&B is a pair. A rank works
  // on m / 2 microbatches of each direction; pairs are shorter than their parts by `hidden`.
  PipelineTimer timer;
  for (const double hidden : {0.0, 0.4, 0.8}) {
    for (std::int32_t p = 2; p <= 16; p += 2) {
      for (const std::int32_t m : {2 * p, 2 * p + 2, 6 * p}) {
        const PipelineShape shape{ScheduleKind::dualpipe, p, 2, m};
        SCOPED_TRACE(text(shape));
        const double f = 1, b = 2, w = 1;
        const std::vector<StageTime> times(static_cast<std::size_t>(2 * p), {f, b, w, hidden});
        const std::vector<double> ends = run_in_order(shape, times, {});
        const double bubble = (p / 2 - 1) * ((f + b - hidden) + b - 3 * w);
        for (std::int32_t s = 0; s < p; ++s) {
          const double busy = m * (f + b) - (all_pairs(shape, s, 0) + all_pairs(shape, s, 1)) * hidden;
          const double end = *std::ranges::max_element(ends);
          EXPECT_LE(end, busy + bubble + 1e-9) << s;
          if (hidden == 0 || s + 1 == p / 2) {
            EXPECT_NEAR(end, busy + bubble, 1e-9) << s;
          }
        }
        const auto fast = timer.run(shape, times, {}).stages;
        EXPECT_EQ(std::vector(fast.begin(), fast.end()), ends);
      }
    }
  }
}

TEST(Bubble, OverlappedExchangesShortenEveryPair) {
  // One stage of m microbatches: the first forward and the last backward are alone. Interleaved and free transfers:
  // (p-1) (f + b) as without pairs, whose work is shorter by `hidden` each.
  PipelineTimer timer;
  const StageTime time{1, 2, 0, 0.75, 0.75};
  for (const std::int32_t m : {1, 2, 7}) {
    const PipelineShape alone{ScheduleKind::one_f_one_b, 1, 1, m, true};
    EXPECT_DOUBLE_EQ(timer.run(alone, std::vector{time}, {}).stages[0], 3.0 * m - 0.75 * (m - 1));
  }
  for (std::int32_t p = 2; p <= 6; ++p) {
    for (std::int32_t v = 2; v <= 3; ++v) {
      const PipelineShape shape{ScheduleKind::interleaved, p, v, 6 * p, true};
      SCOPED_TRACE(text(shape));
      const std::vector<StageTime> times(static_cast<std::size_t>(p), time);
      std::int32_t together = 0;  // pairs of the first stage, which runs the fewest
      for (std::int32_t c = 0; c < v; ++c) together += all_pairs(shape, 0, c);
      const std::vector<double> ends = run_in_order(shape, times, {});
      const double busy = 3.0 * v * 6 * p - 0.75 * together;
      const double end = *std::ranges::max_element(ends);
      EXPECT_GE(end, busy);
      EXPECT_LE(end, busy + 3.0 * (p - 1) + 1e-9);
    }
  }
}

TEST(InFlight, ZeroBubbleHoldsNoMoreThanTheFirstStageOf1f1b) {
  // Qi et al. 2023, table 2: the peak of ZB-H1 is p M_B where a microbatch that waits for its weight gradient
  // keeps M_W <= M_B (32 of 34 + 5 a s / h units of GPT), which is that of 1F1B's first stage.
  for (const double weight_share : {0.0, 0.5, 1.0}) {
    for (std::int32_t p = 2; p <= 8; ++p) {
      double fullest = 0;
      for (std::int32_t s = 0; s < p; ++s) {
        for (const HeldMicrobatches& moment : peaks({ScheduleKind::zero_bubble, p, 1, 4 * p}, s)) {
          fullest = std::max(fullest, moment.in_flight + weight_share * moment.put_off);
        }
      }
      EXPECT_DOUBLE_EQ(fullest, in_flight({ScheduleKind::one_f_one_b, p, 1, 4 * p}, 0));
    }
  }
}

TEST(StageOrder, ZeroBubbleExampleOfThePaper) {
  // Qi et al. 2023, figure 3 (top): 4 stages, 8 microbatches. The last stage runs F1 B1 F2 B2 F3 B3 F4 B4 W1
  // F5 B5 W2 ..., the first one F1 F2 F3 F4 B1 W1 F5 B2 W2 F6.
  const auto words = [](std::int32_t stage) {
    std::vector<PipelineOperation> order;
    stage_order({ScheduleKind::zero_bubble, 4, 1, 8}, stage, order);
    std::string line;
    for (const PipelineOperation& op : order) {
      line += (op.weight ? "W" : op.backward ? "B" : "F") + std::to_string(op.microbatch + 1) + " ";
    }
    return line;
  };
  EXPECT_EQ(words(3), "F1 B1 F2 B2 F3 B3 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 F8 B8 W5 W6 W7 W8 ");
  EXPECT_EQ(words(0), "F1 F2 F3 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 F8 B5 W5 B6 W6 B7 W7 B8 W8 ");
}

TEST(InFlight, PublishedValues) {
  // Narayanan et al. 2021: 1F1B holds at most p microbatches on the first stage and one on the last; the
  // first interleaved stage p (1 + (p-1)/(p v)) microbatches, each of v chunks: p v + p - 1 chunks.
  const PipelineShape plain{ScheduleKind::one_f_one_b, 8, 1, 64};
  EXPECT_EQ(in_flight(plain, 0), 8);
  EXPECT_EQ(in_flight(plain, 7), 1);
  EXPECT_EQ(in_flight({ScheduleKind::gpipe, 8, 1, 64}, 3), 64);
  EXPECT_EQ(in_flight({ScheduleKind::interleaved, 8, 3, 64}, 0), 8 * 3 + 8 - 1);
}

TEST(StageOrder, InterleavedExampleOfThePaper) {
  // Narayanan et al. 2021, figure 4, device 1 of 4, two chunks, eight microbatches: forwards 1..4 of the
  // first chunk, 1..4 of the second, 5..7 of the first; then backwards begin with the second chunk.
  std::vector<PipelineOperation> order;
  stage_order({ScheduleKind::interleaved, 4, 2, 8}, 0, order);
  const std::vector<std::pair<int, int>> warm_up_work = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1},
                                                         {1, 2}, {1, 3}, {0, 4}, {0, 5}, {0, 6}};
  for (std::size_t i = 0; i < warm_up_work.size(); ++i) {
    EXPECT_FALSE(order[i].backward);
    EXPECT_EQ((std::pair<int, int>(order[i].chunk, order[i].microbatch)), warm_up_work[i]) << i;
  }
  EXPECT_TRUE(order[11].backward);
  EXPECT_EQ(order[11].chunk, 1);
  EXPECT_EQ(order[11].microbatch, 0);
  EXPECT_FALSE(order[12].backward);
  EXPECT_EQ(order[12].microbatch, 7);
}

TEST(Bubble, EqualStagesAndFreeTransfers) {
  // Ideal time m v (f + b) for chunks of f and b; the first microbatch reaches the last stage after (p-1) f
  // and the last gradient the first stage after (p-1) b: bubble / ideal = (p-1) / (v m). GPipe: Huang et al.
  // 2019, section 2.3; 1F1B and interleaved: Narayanan et al. 2021, sections 2.2.1 and 2.2.2.
  PipelineTimer timer;
  for (const PipelineShape& shape : small_shapes()) {
    if (shape.kind == ScheduleKind::one_f_one_b && shape.microbatches < shape.stages) continue;
    if (shape.kind == ScheduleKind::zero_bubble) continue;  // below
    SCOPED_TRACE(text(shape));
    const double f = 1, b = 2;
    const std::vector<StageTime> times(static_cast<std::size_t>(shape.stages), {f, b});
    const double ideal = shape.microbatches * shape.virtual_stages * (f + b);
    const double bubble = ideal * (shape.stages - 1) / (shape.virtual_stages * shape.microbatches);
    const std::vector<double> ends = run_in_order(shape, times, {});
    EXPECT_NEAR(*std::ranges::max_element(ends), ideal + bubble, 1e-9);
    EXPECT_NEAR(*std::ranges::max_element(timer.run(shape, times, {}).stages), ideal + bubble, 1e-9);
  }
}

TEST(Bubble, ZeroBubbleIsThatOfThePaper) {
  // Qi et al. 2023, table 2: (p-1) (F + B - W) against (p-1) (F + B + W) of 1F1B; a third of it where all
  // three are equal. For W <= B, so that the put-off work fits between the gradients of the cool-down.
  PipelineTimer timer;
  for (const auto& [f, b, w] :
       {std::tuple(1.0, 1.0, 1.0), std::tuple(1.0, 1.5, 0.75), std::tuple(2.0, 1.0, 0.0)}) {
    for (std::int32_t p = 2; p <= 8; ++p) {
      for (const std::int32_t m : {p, p + 1, 2 * p, 100, 5001}) {
        const PipelineShape shape{ScheduleKind::zero_bubble, p, 1, m};
        SCOPED_TRACE(text(shape));
        const std::vector<StageTime> times(static_cast<std::size_t>(p), {f, b + w, w});
        const double expected = m * (f + b + w) + (p - 1) * (f + b - w);
        const std::vector<double> ends = run_in_order(shape, times, {});
        EXPECT_NEAR(*std::ranges::max_element(ends), expected, 1e-9 * expected);
        EXPECT_NEAR(*std::ranges::max_element(timer.run(shape, times, {}).stages), expected, 1e-9 * expected);
      }
    }
  }
}

TEST(Bubble, LongRunsSkipPeriodsExactly) {
  PipelineTimer timer;
  const std::vector<StageTime> times(8, {1, 2});
  for (const std::int32_t m : {1000, 1001, 1024, 99'999}) {
    const double plain = 3.0 * (m + 7);
    EXPECT_NEAR(timer.run({ScheduleKind::one_f_one_b, 8, 1, m}, times, {}).stages[0], plain, 1e-9 * plain);
  }
  const double interleaved = 3.0 * (4 * 8000 + 7);
  EXPECT_NEAR(timer.run({ScheduleKind::interleaved, 8, 4, 8000}, times, {}).stages[0], interleaved,
              1e-9 * interleaved);
}

TEST(Transfers, OneMicrobatchCrossesThePipelineAndBack) {
  // 3 stages, 1 microbatch, transfer t: forwards 1 + t + 1 + t + 1, backwards 2 + t + 2 + t + 2; stage s ends
  // with its backward, a blocking one with its message.
  const std::vector<StageTime> times(3, {1, 2});
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    EXPECT_EQ(run_in_order({kind, 3, 1, 1}, times, {0.5, false}), (std::vector<double>{11, 8.5, 6}));
    EXPECT_EQ(run_in_order({kind, 3, 1, 1}, times, {0.5, true}), (std::vector<double>{11, 9, 6.5}));
  }
}

TEST(Transfers, BlockingSendsKeepTheSenderBusy) {
  // Two stages of (1, 1), t = 1, three microbatches, gpipe. Blocking: stage 0 sends at 2, 4, 6, so stage 1
  // runs forwards 2-3, 4-5, 6-7, then backwards 7-8 (sent 9), 9-10 (sent 11), 11-12 (sent 13); stage 0 ends
  // at 14. Asynchronous: forwards 0-3 arrive at 2, 3, 4; stage 1 is busy 2-8, its messages arrive at 7, 8, 9;
  // stage 0 ends at 10.
  const std::vector<StageTime> times(2, {1, 1});
  EXPECT_EQ(run_in_order({ScheduleKind::gpipe, 2, 1, 3}, times, {1, true}), (std::vector<double>{14, 13}));
  EXPECT_EQ(run_in_order({ScheduleKind::gpipe, 2, 1, 3}, times, {1, false}), (std::vector<double>{10, 8}));
}

TEST(Transfers, EachBoundaryTakesItsOwn) {
  // 4 stages of (1, 2), messages of 1/2, 5 and 1/4 between them: one microbatch ends its last forward after
  // 4 + 5.75. The boundary that closes the chain is not used.
  const std::vector<StageTime> times(4, {1, 2});
  const Transfer transfer({0.5, 5, 0.25, 1e9}, false);
  // Stage 3 runs its backward 9.75 to 11.75; 12 to 14 on stage 2, 19 to 21 on stage 1, 21.5 to 23.5 on stage
  // 0.
  const std::vector<double> ends = {23.5, 21, 14, 11.75};
  PipelineTimer timer;
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    EXPECT_EQ(run_in_order({kind, 4, 1, 1}, times, transfer), ends);
    const auto fast = timer.run({kind, 4, 1, 1}, times, transfer).stages;
    EXPECT_EQ(std::vector(fast.begin(), fast.end()), ends);
  }
}

TEST(Transfers, TheNextChunkBeginsBeyondTheClosingBoundary) {
  // 2 stages, 2 chunks, 2 microbatches of (1, 1) per chunk; down 1/2, back to the first stage 3. Forwards of
  // stage 0: chunk 0 at 0-2. Stage 1 gets them at 1.5 and 2.5, ends at 2.5 and 3.5; chunk 1 of stage 0 begins
  // at 5.5 and 6.5, its ends 6.5 and 7.5 arrive at 7 and 8; stage 1 ends them at 8 and 9. Backwards mirror
  // that: all forwards first (m = p), so stage 1 has chunk 1 at 9-11, stage 0 at 10.5-11.5 and 11.5-12.5;
  // back over the closing boundary at 14.5 and 15.5, done 15.5 and 16.5; stage 0 ends chunk 0 at 17 and 18.
  const Transfer transfer({0.5, 3}, false);
  const std::vector<StageTime> times(2, {1, 1});
  const std::vector<double> ends = {18, 16.5};
  EXPECT_EQ(run_in_order({ScheduleKind::interleaved, 2, 2, 2}, times, transfer), ends);
  PipelineTimer timer;
  const auto fast = timer.run({ScheduleKind::interleaved, 2, 2, 2}, times, transfer).stages;
  EXPECT_EQ(std::vector(fast.begin(), fast.end()), ends);
}

TEST(Spans, MatchTheStages) {
  const PipelineShape shape{ScheduleKind::interleaved, 3, 2, 6};
  const std::vector<StageTime> times = {{1, 2}, {1.5, 3}, {0.5, 1}};
  std::vector<PipelineSpan> spans;
  const std::vector<double> ends = run_in_order(shape, times, {0.25, true}, &spans);
  EXPECT_EQ(spans.size(), 2U * 3 * 2 * 6);
  std::vector<double> last(3, 0);
  for (const PipelineSpan& span : spans) {
    const auto s = static_cast<std::size_t>(span.stage);
    EXPECT_GE(span.start, last[s]);
    EXPECT_DOUBLE_EQ(span.end - span.start, span.operation.backward ? times[s].backward : times[s].forward);
    // Only the model's very last forward and very first layer's backward stay where they are.
    const bool stays =
        span.operation.backward ? s == 0 && span.operation.chunk == 0 : s == 2 && span.operation.chunk == 1;
    EXPECT_DOUBLE_EQ(span.sent - span.end, stays ? 0 : 0.25);
    last[s] = span.sent;
  }
  EXPECT_EQ(last, ends);
}

TEST(PipelineMemo, AnswersAreThoseOfTheirQuestion) {
  // Questions that differ in one input only, asked in turn: none gets another's answer.
  PipelineMemo memo;
  const std::vector<StageTime> base = {{1, 2}, {1, 2}, {3, 2}, {1, 2}};
  std::vector<StageTime> longer_tail = base, swapped = {{1, 2}, {3, 2}, {1, 2}, {1, 2}};
  longer_tail[3].backward = 5;
  std::vector<StageTime> cut = base;
  for (StageTime& time : cut) time.weight = 1;
  std::vector<StageTime> hiding = base, rarely = base, both = base;
  hiding[2].hidden = 0.5;
  rarely[2].hidden_rarely = 0.5;
  both.insert(both.end(), swapped.begin(), swapped.end());
  std::vector<StageTime> apart = both;
  apart[2].apart = 0.5;
  const std::vector<std::tuple<PipelineShape, std::vector<StageTime>, Transfer>> questions = {
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, base, {0.5, false}},
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, base, {0.5, true}},
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, base, {0.25, false}},
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, base, {{0.5, 0.5, 0.25, 0}, false}},
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, base, {{0.5, 0.25, 0.5, 0}, false}},
      {{ScheduleKind::one_f_one_b, 4, 1, 9}, base, {0.5, false}},
      {{ScheduleKind::gpipe, 4, 1, 8}, base, {0.5, false}},
      {{ScheduleKind::interleaved, 4, 2, 8}, base, {0.5, false}},
      {{ScheduleKind::interleaved, 4, 4, 8}, base, {0.5, false}},
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, longer_tail, {0.5, false}},
      {{ScheduleKind::one_f_one_b, 4, 1, 8}, swapped, {0.5, false}},
      {{ScheduleKind::zero_bubble, 4, 1, 8}, base, {0.5, false}},
      {{ScheduleKind::zero_bubble, 4, 1, 8}, cut, {0.5, false}},
      {{ScheduleKind::interleaved, 4, 2, 8, true}, base, {0.5, false}},
      {{ScheduleKind::interleaved, 4, 2, 8, true}, hiding, {0.5, false}},
      {{ScheduleKind::interleaved, 4, 2, 8, true}, rarely, {0.5, false}},
      {{ScheduleKind::dualpipe, 4, 2, 8}, both, {0.5, false}},
      {{ScheduleKind::dualpipe, 4, 2, 8}, apart, {0.5, false}},
      {{ScheduleKind::dualpipe, 4, 2, 8}, both, {{0.5, 0.25, 0.5, 0}, false}}};
  for (int round = 0; round < 3; ++round) {
    for (const auto& [shape, times, transfer] : questions) {
      const std::vector<double> expected = run_in_order(shape, times, transfer);
      const auto actual = memo.run(shape, times, transfer).stages;
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t s = 0; s < expected.size(); ++s)
        EXPECT_NEAR(actual[s], expected[s], 1e-9 * expected[s]);
    }
  }
}

}  // namespace
}  // namespace shardscape::schedule
