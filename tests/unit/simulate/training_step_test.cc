// One training step against sums written out by hand, and the limits it has to reach.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/compute/attention.h"
#include "engine/compute/gemm.h"
#include "engine/simulate.h"
#include "engine/step/layers/host_work.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr std::int64_t kSequence = 512;

/// One GPT block without dropout, bf16, flash attention; vector units so fast that streams bind.
Setting one_layer(std::int64_t ranks, std::int64_t batch) {
  Setting s;
  s.model = test::gpt(1, 1024, 8, 32000, kSequence);
  s.model.dropout = 0;
  s.model.tied_embeddings = false;
  s.system.device = test::round_device();
  s.system.device.sm.vector_flops_per_clock = 1e9;
  s.system.fabric = test::crossbar(ranks, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = test::training(kSequence, batch);
  return s;
}

/// Forward and backward of a product: activations in bf16, the weights' gradient accumulated in fp32.
double product(const DeviceSpec& device, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto time = [&](compute::GemmShape shape, compute::GemmOutput output) {
    return compute::gemm(shape, Precision::bf16, device, output).time.value();
  };
  return time({m, n, k, 1}, {2, false}) + time({m, k, n, 1}, {2, false}) + time({k, n, m, 1}, {4, true});
}

/// A kernel that streams `bytes`.
double stream(double bytes, double kernels = 1) { return kernels * 2e-6 + bytes / 2e12; }

/// Forward and backward of one microbatch of one sequence, operator by operator.
double microbatch_time(const DeviceSpec& device) {
  const double th = 512.0 * 1024, tf = 512.0 * 4096, tv = 512.0 * 32000;
  double sum = 0;
  sum += stream(4 * th) + stream(th * (2 + 8));  // embedding: read and write; fp32 add to the table
  sum += 3 * (stream(4 * th) + stream(6 * th));  // two norms of the block, the final one
  sum += 2 * (stream(6 * th) + stream(4 * th));  // residual additions
  sum += stream(4 * tf) + stream(6 * tf);        // GELU
  sum += product(device, 512, 3 * 1024, 1024);   // QKV
  sum += product(device, 512, 1024, 1024);       // output projection
  sum += product(device, 512, 4096, 1024);       // h to 4 h
  sum += product(device, 512, 1024, 4096);       // 4 h to h
  sum += product(device, 512, 32000, 1024);      // head
  sum += stream((2 + 16) * tv, 4) + stream((4 + 4) * tv, 2);  // loss: cast, two reductions, write; backward
  const compute::AttentionShape attention{1, 8, 8, 128, 512, 512, 0.5, false};
  sum += compute::flash_forward(attention, Precision::bf16, device).time.value() +
         compute::flash_backward(attention, Precision::bf16, device).time.value();
  return sum;
}

TEST(TrainingStep, DataParallelSumOfItsParts) {
  // 2 replicas, 6 samples: 3 microbatches each. Ring all-reduce of fp32 gradients between two ranks:
  // 2 steps over two links of 1 us, half of the buffer each at 100 GB/s. Adam reads the gradient (4), reads
  // and writes master copy and moments (24) and writes the weights (2), in one kernel of 2 us.
  const Setting setting = one_layer(2, 6);
  const double block = 12.0 * 1024 * 1024 + 4 * 1024 + (3072 + 1024 + 4096 + 1024);
  const double parameters = block + (32000.0 + 512) * 1024 + 32000.0 * 1024 + 2 * 1024;
  ASSERT_DOUBLE_EQ(setting.model.parameters(), parameters);
  const double reduce = 2 * 2e-6 + 2 * (4 * parameters / 2) / 100e9;
  const double adam = 2e-6 + 30 * parameters / 2e12;
  const double work = 3 * microbatch_time(setting.system.device);

  const Prediction out = Simulator(setting).run(test::plan_of(1, 1, 1, 2));
  EXPECT_EQ(out.status, Status::ok);
  EXPECT_EQ(out.microbatches, 3);
  EXPECT_NEAR(out.breakdown[TimeClass::compute].value() / work, 1, 1e-12);
  EXPECT_NEAR(out.breakdown[TimeClass::data_comm].value() / reduce, 1, 1e-12);
  EXPECT_NEAR(out.breakdown[TimeClass::optimizer].value() / adam, 1, 1e-12);
  EXPECT_NEAR(out.step_time.value() / (work + reduce + adam), 1, 1e-12);
  EXPECT_NEAR(out.tokens_per_s_per_gpu * out.step_time.value(), 6 * 512 / 2.0, 1e-6);
}

TEST(TrainingStep, ZeroSplitsTheCollectiveAndTheOptimizer) {
  // ZeRO-1 sends 4 bytes per parameter once (reduce-scatter) and 2 once (gather), and updates half each.
  const Setting setting = one_layer(2, 6);
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  plan.zero_stage = 1;
  const double parameters = setting.model.parameters();
  const Prediction out = Simulator(setting).run(plan);
  EXPECT_NEAR(out.breakdown[TimeClass::data_comm].value(), 2 * 2e-6 + (4 + 2) * parameters / 2 / 100e9,
              1e-12);
  EXPECT_NEAR(out.breakdown[TimeClass::optimizer].value(), 2e-6 + 15 * parameters / 2e12, 1e-12);
  // ZeRO-2 scatters gradients after each of the 3 microbatches.
  plan.zero_stage = 2;
  EXPECT_NEAR(Simulator(setting).run(plan).breakdown[TimeClass::data_comm].value(),
              3 * (2e-6 + 4 * parameters / 2 / 100e9) + 2e-6 + 2 * parameters / 2 / 100e9, 1e-12);
  // ZeRO-3 also gathers weights for each forward and each backward.
  plan.zero_stage = 3;
  EXPECT_NEAR(Simulator(setting).run(plan).breakdown[TimeClass::data_comm].value(),
              3 * (3 * 2e-6 + (4 + 2 + 2) * parameters / 2 / 100e9), 1e-12);
}

TEST(TrainingStep, TheFirstForwardHidesTheGatherOfWeights) {
  // ZeRO-1 of two replicas: each of 10 calls of the gather takes 2 us, all together send 2 bytes of half of the
  // parameters at 100 GB/s. A share g of the first forward, F long, hides at most g F of it, and never the first call.
  Setting setting = one_layer(2, 6);
  setting.system.stack.communication.zero_bucket = Bytes(2 * setting.model.parameters() / 9.5);
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  plan.zero_stage = 1;
  const double gather = 10 * 2e-6 + 2 * setting.model.parameters() / 2 / 100e9;
  const auto data_comm = [&](double share) {
    setting.system.stack.communication.gather_overlap = share;
    return Simulator(setting).run(plan).breakdown[TimeClass::data_comm].value();
  };
  const double none = data_comm(0), all = none - 0.9 * gather;
  const double tenth = none - data_comm(0.1), fifth = none - data_comm(0.2);
  ASSERT_LT(fifth, gather);
  EXPECT_NEAR(fifth, 2 * tenth, 1e-12);
  // Forward is less than half of the microbatch: backward computes two products for each of its own.
  EXPECT_LT(10 * tenth, 0.5 * microbatch_time(setting.system.device));
  EXPECT_GT(10 * tenth, 0.25 * microbatch_time(setting.system.device));
  EXPECT_NEAR(data_comm(1), 10 * tenth < 0.9 * gather ? none - 10 * tenth : all, 1e-12);
}

TEST(TrainingStep, LaterChunksHideTheirGatherBesideTheChunkBefore) {
  // Two stages of two chunks of one layer, two microbatches, ZeRO-1: a share g of one forward f of a chunk hides g f of
  // the first chunk's gather, which takes longer. The gather of the second chunk has the first one's other microbatch
  // and its own first forward: 2 g f. In all 3 g f, where one chunk of both layers hides 2 g f.
  const auto run = [&](std::int32_t chunks, double share) {
    Setting setting = one_layer(4, 4);
    setting.model.layers = 4;
    setting.system.stack.communication.bucket = Bytes(1e6);
    setting.system.stack.communication.gather_overlap = share;
    ParallelPlan plan = test::plan_of(1, 1, 2, 2);
    plan.zero_stage = 1;
    plan.virtual_stages = chunks;
    if (chunks > 1) plan.schedule = ScheduleKind::interleaved;
    return Simulator(setting).run(plan);
  };
  // The step is so much shorter, but for what messages between chunks and hidden traffic cost each other.
  const auto hidden = [&](std::int32_t chunks) {
    const Prediction none = run(chunks, 0), some = run(chunks, 0.1);
    const Seconds less = none.breakdown[TimeClass::data_comm] - some.breakdown[TimeClass::data_comm];
    EXPECT_NEAR((none.step_time - some.step_time + some.contention) / less, 1, 1e-6) << chunks;
    EXPECT_EQ(none.contention, Seconds(0)) << chunks;
    return less.value();
  };
  ASSERT_GT(hidden(1), 0);
  EXPECT_NEAR(hidden(2) / hidden(1), 1.5, 1e-6);
}

TEST(TrainingStep, ComputeLosesWhatTrafficBesideItDoesNotHide) {
  // ZeRO-3 hides all of its traffic where the links are fast; of the time that it is under way 1 - h is lost. What
  // outlasts the passes on slow links shows in any case.
  Setting setting = one_layer(2, 6);
  setting.system.stack.communication.data_overlap = 1;
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  plan.zero_stage = 3;
  const auto data_comm = [&](double bandwidth, double hidden) {
    setting.system.fabric.dimensions[0].bandwidth = BytesPerSecond(bandwidth);
    setting.system.stack.communication.data_hidden = hidden;
    return Simulator(setting).run(plan).breakdown[TimeClass::data_comm].value();
  };
  const auto traffic = [&](double bandwidth) {
    return 3 * (3 * 2e-6 + (4 + 2 + 2) * setting.model.parameters() / 2 / bandwidth);
  };
  EXPECT_NEAR(data_comm(10e12, 1), 0, 1e-15);
  EXPECT_NEAR(data_comm(10e12, 0.23) / (0.77 * traffic(10e12)), 1, 1e-9);
  const double passes = 3 * microbatch_time(setting.system.device);
  EXPECT_NEAR(data_comm(1e9, 1) / (traffic(1e9) - passes), 1, 1e-9);
  EXPECT_NEAR(data_comm(1e9, 0.23) / (traffic(1e9) - 0.23 * passes), 1, 1e-9);
}

TEST(TrainingStep, TrafficOfOnceAStepTakesItsSmsWhereItLiesBesideCompute) {
  // ZeRO-1, 10 buckets of the gradients and 5 of the weights. Where the links are fast all but the last bucket of the
  // gradients lies beside the last backward, all but the first of the weights beside the first forward: a quarter of
  // the SMs is lost for so long. On slow links it is lost for one microbatch of three, and what shows grows by no more.
  Setting setting = one_layer(2, 6);
  StackProfile::Communication& stack = setting.system.stack.communication;
  stack.data_overlap = stack.gather_overlap = 1;
  stack.zero_bucket = Bytes(4 * setting.model.parameters() / 9.5);
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  plan.zero_stage = 1;
  const auto lost = [&](double bandwidth, double share, ExecutionMode mode) {
    setting.system.fabric.dimensions[0].bandwidth = BytesPerSecond(bandwidth);
    const auto time = [&](double sms) {
      stack.data_sms = sms;
      return Simulator(setting, {.mode = mode}).run(plan).step_time.value();
    };
    return time(share * static_cast<double>(setting.system.device.sm.count)) - time(0);
  };
  const double half = setting.model.parameters() / 2;
  const double gradients = 10 * 2e-6 + 4 * half / 10e12, weights = 5 * 2e-6 + 2 * half / 10e12;
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    EXPECT_NEAR(lost(10e12, 0.25, mode) / (0.25 * (0.9 * gradients + 0.8 * weights)), 1, 1e-6);
    EXPECT_NEAR(lost(1e8, 0.25, mode) / (0.25 * microbatch_time(setting.system.device)), 1, 1e-6);
  }
}

TEST(TrainingStep, NarrowProductsPayForTheirCasts) {
  // Of one block with hidden h and t tokens. Forward reads the inputs of the four products in bf16, h + h + h + 4 h
  // per token, and writes two copies of one byte: 4 bytes each. Backward does so for the gradients of the outputs,
  // 3 h + h + 4 h + h, and moves 8 bytes for each of the 12 h^2 weights. A kernel of 2 us for each cast.
  Setting setting = one_layer(1, 3);
  setting.workload.precision = PolicyName::fp8;
  setting.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 8192;
  const auto compute_time = [&] {
    return Simulator(setting).run(test::plan_of(1, 1, 1, 1)).breakdown[TimeClass::compute].value();
  };
  const double plain = compute_time();
  setting.system.stack.quantisation = {1, 8};
  const double th = 512.0 * 1024;
  const double casts = stream(4 * 7 * th, 4) + stream(4 * 9 * th + 8 * 12 * 1024.0 * 1024, 4);
  EXPECT_NEAR((compute_time() - plain) / (3 * casts), 1, 1e-9);
  // mxfp8 writes a scale for every 32 elements of each copy.
  setting.workload.precision = PolicyName::mxfp8;
  const double scaled = casts + (7 + 9) * th * 2 / 32 / 2e12;
  EXPECT_NEAR((compute_time() - plain) / (3 * scaled), 1, 1e-9);
  setting.workload.precision = PolicyName::bf16;
  const double wide = compute_time();
  setting.system.stack.quantisation = {};
  EXPECT_EQ(compute_time(), wide);
}

TEST(TrainingStep, ADeviceMayRunAtWhatPowerLeaves) {
  // 1 pJ per FLOP under 500 W, of which the card takes 100 idle: 400 TFLOP/s at most. The block's products do 2 FLOPs
  // forward and 4 backward for each of its 12 h^2 weights, the head's for V h, and each token.
  Setting setting = one_layer(1, 3);
  setting.system.device.energy = {};
  setting.system.device.energy.idle_watts = 100;
  setting.system.device.energy.flop_pj = 1;
  setting.system.device.power = Watts(500);
  const auto compute_time = [&](bool by_energy) {
    setting.system.device.energy.steps = by_energy;
    return Simulator(setting).run(test::plan_of(1, 1, 1, 1)).breakdown[TimeClass::compute].value();
  };
  const double sustained = compute_time(false);
  const double products = 3 * 6 * 512.0 * (12 * 1024.0 * 1024 + 32000.0 * 1024) / 400e12;
  EXPECT_GE(compute_time(true), products);
  setting.system.device.power = Watts(140);  // 40 TFLOP/s: nothing but power counts
  const double starved = compute_time(true);
  EXPECT_GE(starved, 10 * products);
  EXPECT_LT(starved, 1.1 * 10 * products + sustained);
  EXPECT_EQ(compute_time(false), sustained);
}

TEST(TrainingStep, TheLastBackwardHidesAllBucketsButTheLast) {
  // On links so fast that every bucket is gone before the next is whole, what shows is what the last layer
  // completes: with 32.8 M parameters in the head, 12.6 M in the block and 33.3 M in the embedding the
  // block's end leaves (32.8 + 12.6) / 78.7 = 0.58: of four equal buckets two have gone, two leave with the
  // end of backward. One bucket leaves when everything is whole, and with no overlap all of them do.
  Setting setting = one_layer(2, 6);
  setting.system.fabric.dimensions[0].bandwidth = BytesPerSecond(1e15);  // small against the backward
  setting.system.fabric.dimensions[0].latency = Seconds(0);
  const double parameters = setting.model.parameters();
  const auto data_comm = [&](double overlap, double bucket) {
    setting.system.stack.communication.data_overlap = overlap;
    setting.system.stack.communication.bucket = Bytes(bucket);
    return Simulator(setting).run(test::plan_of(1, 1, 1, 2)).breakdown[TimeClass::data_comm].value();
  };
  const double all = 4 * parameters / 1e15;
  EXPECT_NEAR(data_comm(1, parameters) / all, 0.5, 1e-6);
  EXPECT_NEAR(data_comm(1, 1e12) / all, 1, 1e-6);
  EXPECT_NEAR(data_comm(0, parameters) / all, 1, 1e-6);
}

TEST(TrainingStep, SlowHostSetsThePace) {
  // Launching takes far longer than computing: per microbatch embedding, block and head launch once each way.
  Setting setting = one_layer(1, 4);
  setting.system.stack.host.forward_layer = Seconds(2);
  setting.system.stack.host.backward_layer = Seconds(3);
  setting.system.stack.host.step_fixed = Seconds(7);
  const Prediction out = Simulator(setting).run(test::plan_of(1, 1, 1, 1));
  const double work = 4 * microbatch_time(setting.system.device);
  EXPECT_NEAR(out.breakdown[TimeClass::compute].value(), work, 1e-9);
  EXPECT_NEAR(out.breakdown[TimeClass::host].value(), 4 * 3 * (2 + 3) - work + 7, 1e-9);
}

TEST(TrainingStep, HostLaunchesNoPassThatIsAGraph) {
  // The launches of the test before are in a graph from Hopper on, with 5 s once per step in place of 7; those of
  // experts are not.
  Setting setting = one_layer(1, 4);
  StackProfile& stack = setting.system.stack;
  stack.host.forward_layer = Seconds(2);
  stack.host.backward_layer = Seconds(3);
  stack.host.step_fixed = Seconds(7);
  stack.host.graph_step = Seconds(5);
  stack.graphs_from = Architecture::hopper;
  const double work = 4 * microbatch_time(setting.system.device);
  const auto step_on = [&](Architecture architecture) {
    setting.system.device.architecture = architecture;
    const Prediction out = Simulator(setting).run(test::plan_of(1, 1, 1, 1));
    return (out.step_time - out.breakdown[TimeClass::optimizer]).value();
  };
  EXPECT_NEAR(step_on(Architecture::ampere), 4 * 3 * (2 + 3) + 7, 1e-9);
  EXPECT_NEAR(step_on(Architecture::hopper), work + 5, 1e-9);
  EXPECT_NEAR(step_on(Architecture::blackwell), work + 5, 1e-9);
  setting.model.moe.emplace();
  EXPECT_EQ(setting.training_host(), stack.host);
  EXPECT_EQ(step::once_per_step(setting), Seconds(7));
}

TEST(TrainingStep, WorkPerRankRunsBesideTheLaunches) {
  // Two tensor ranks, one layer, everything far slower on the host than on the device. Launching takes 1 s
  // per pass and 0.5 s per collective; the second thread takes 2 ranks x 3 s = 6 s per collective.
  // Collectives of the passes (no sequence parallelism): embedding 1 forward, block 2 and 2, head 1 backward.
  // A pass takes the longer of the two threads: embedding 6 + 1, block 12 + 12, head 1 + 6.
  Setting setting = one_layer(2, 4);
  setting.system.stack.host.forward_layer = Seconds(1);
  setting.system.stack.host.backward_layer = Seconds(1);
  setting.system.stack.host.per_collective = Seconds(0.5);
  setting.system.stack.host.per_collective_rank = Seconds(3);
  const ParallelPlan plan = test::plan_of(2, 1, 1, 1);
  const Prediction slow = Simulator(setting).run(plan);
  EXPECT_NEAR((slow.step_time - slow.breakdown[TimeClass::optimizer]).value(), 4 * (6 + 1 + 12 + 12 + 1 + 6),
              1e-9);
  // Without it, launches: a pass with c collectives takes 1 + c / 2.
  setting.system.stack.host.per_collective_rank = Seconds(0);
  const Prediction fast = Simulator(setting).run(plan);
  EXPECT_NEAR((fast.step_time - fast.breakdown[TimeClass::optimizer]).value(),
              4 * (1.5 + 1 + 2 + 2 + 1 + 1.5), 1e-9);
}

TEST(TrainingStep, ZeroMayHaveBucketsOfItsOwn) {
  // A reduce-scatter of 4 and a gather of 2 bytes per parameter, a call of 1 ms for each bucket begun.
  Setting setting = one_layer(2, 6);
  setting.system.stack.communication.call = Seconds(1e-3);
  setting.system.stack.communication.bucket = Bytes(1e6);
  setting.system.stack.communication.zero_bucket = Bytes(1e9);
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  const double parameters = setting.model.parameters();
  const double wires = (4 + 2) * parameters / 2 / 100e9;
  const auto data_comm = [&] { return Simulator(setting).run(plan).breakdown[TimeClass::data_comm].value(); };
  plan.zero_stage = 1;
  EXPECT_NEAR(data_comm(), 2e-3 + 2 * 2e-6 + wires, 1e-9);
  setting.system.stack.communication.zero_bucket = Bytes(0);
  const double calls = std::ceil(4 * parameters / 1e6) + std::ceil(2 * parameters / 1e6);
  EXPECT_NEAR(data_comm(), calls * (1e-3 + 2e-6) + wires, 1e-9);
  // Two ranks with 2 MB each at least make buckets of 4 MB.
  setting.system.stack.communication.bucket_per_rank = Bytes(2e6);
  const double fewer = std::ceil(4 * parameters / 4e6) + std::ceil(2 * parameters / 4e6);
  EXPECT_NEAR(data_comm(), fewer * (1e-3 + 2e-6) + wires, 1e-9);
}

TEST(TrainingStep, FullRecomputeRepeatsTheBlocks) {
  const Setting setting = one_layer(1, 4);
  ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  plan.recompute = Recompute::full;
  const double device_forward = [&] {
    const auto gemm = [&](std::int64_t n, std::int64_t k) {
      return compute::gemm({512, n, k, 1}, Precision::bf16, setting.system.device).time.value();
    };
    const compute::AttentionShape attention{1, 8, 8, 128, 512, 512, 0.5, false};
    const double th = 512.0 * 1024;
    return gemm(3072, 1024) + gemm(1024, 1024) + gemm(4096, 1024) + gemm(1024, 4096) +
           compute::flash_forward(attention, Precision::bf16, setting.system.device).time.value() +
           2 * stream(4 * th) + 2 * stream(6 * th) + stream(16 * th);
  }();
  EXPECT_NEAR(Simulator(setting).run(plan).breakdown[TimeClass::recompute].value(), 4 * device_forward,
              1e-12);
}

/// Eight equal layers and a fabric that costs nothing.
Setting ideal(std::int64_t ranks, std::int64_t batch) {
  Setting s = one_layer(ranks, batch);
  s.model.layers = 8;
  s.system.fabric = test::crossbar(ranks, 1e30, 0);
  return s;
}

TEST(IdealScaling, DataParallelDividesTheWork) {
  const auto step = [](std::int32_t data) {
    const Prediction out = Simulator(ideal(data, 64)).run(test::plan_of(1, 1, 1, data));
    return out.step_time - out.breakdown[TimeClass::optimizer];
  };
  for (const int data : {2, 4, 8, 32}) EXPECT_NEAR(step(1) / step(data), data, 1e-9 * data);
}

TEST(IdealScaling, PipelineTendsToTheSlowestStage) {
  // A 1F1B step lies between m slots of the slowest stage and those plus one trip through all stages; so
  // step / m tends to the slowest stage, which no split can push below work / p.
  for (const ScheduleKind schedule : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    ParallelPlan plan = test::plan_of(1, 1, 4, 1);
    plan.schedule = schedule;
    for (const std::int64_t m : {4, 64, 1024, 16384}) {
      SCOPED_TRACE(testing::Message() << name_of(schedule) << ", " << m << " microbatches");
      const Setting setting = ideal(4, m);
      Details details;
      SimulateOptions options;
      options.time_infeasible = true;
      const Prediction out = Simulator(setting, options).run(plan, {}, &details);
      ASSERT_EQ(details.stage_forward.size(), 4U);
      double forward = 0, backward = 0, slot = 0, trip = 0;
      for (std::size_t s = 0; s < 4; ++s) {
        const double f = details.stage_forward[s].value(), b = details.stage_backward[s].value();
        forward = std::max(forward, f);
        backward = std::max(backward, b);
        slot = std::max(slot, f + b);
        trip += f + b;
      }
      const double pace = schedule == ScheduleKind::gpipe ? forward + backward : slot;
      const double md = static_cast<double>(m);
      const double step = (out.step_time - out.breakdown[TimeClass::optimizer]).value();
      // The stage that ends last may not be the slowest, whence the optimizer's slack of both sides.
      EXPECT_GE(out.step_time.value(), md * pace * (1 - 1e-12));
      EXPECT_LE(step, (md * pace + trip) * (1 + 1e-12));
      EXPECT_GE(slot, trip / 4);
    }
  }
}

TEST(IdealScaling, EqualStagesHaveTheTextbookBubble) {
  // Host-bound layers make stages exactly equal but for embedding and head, which cost nothing here: a stage
  // takes 2 layers x (1 + 2) s, and the step (m + p - 1) slots of that; interleaved (m + (p - 1)/v).
  Setting setting = ideal(4, 8);
  setting.model.vocabulary = 1;
  setting.system.device.hbm.bandwidth_per_stack = BytesPerSecond(1e30);
  setting.system.stack.host.forward_layer = Seconds(1);
  setting.system.stack.host.backward_layer = Seconds(2);
  ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  Details details;
  (void)Simulator(setting).run(plan, {}, &details);
  EXPECT_NEAR(details.stage_forward[1].value(), 2, 1e-9);
  EXPECT_NEAR(details.stage_forward[0].value(), 3, 1e-9);  // the embedding is launched like a layer
  // Inner stages 6, outer stages 9 per microbatch. Ideal m slots of the outer ones: 72. Stage 0 waits between
  // its first forward wave and backward: fill and drain pass the inner stages and the last one once.
  const Prediction out = Simulator(setting).run(plan);
  EXPECT_GE(out.step_time.value(), 72);
  EXPECT_NEAR(out.step_time.value(),
              72 + out.breakdown[TimeClass::bubble].value() + out.breakdown[TimeClass::optimizer].value(),
              1e-9);
  EXPECT_NEAR(out.breakdown[TimeClass::bubble].value(), 6 + 6 + 9, 1e-9);
}

/// Nodes of 4 ranks on a fast switch, as many of them on one that is 25 times slower; one rank per stage.
Setting two_tiers(std::int64_t nodes) {
  Setting s = one_layer(1, 1);
  s.model = test::gpt(4 * nodes, 1024, 8, 32000, kSequence);
  s.model.dropout = 0;
  s.system.fabric = {"tiers", {}};
  s.system.fabric.dimensions.push_back(test::dimension("node", DimensionKind::switched, {4}, 100e9, 1e-6));
  s.system.fabric.dimensions.push_back(test::dimension("nodes", DimensionKind::switched, {nodes}, 4e9, 2e-6));
  return s;
}

TEST(PipelineBoundaries, EachCostsWhatItsOwnLinksDo) {
  // One microbatch crosses each boundary once down and once up: 12 inside nodes, two hops of 1 us at 100
  // GB/s, and 3 between them, two hops of 1 us and two of 2 us at 4 GB/s. The message is 512 x 1024 elements
  // of 2 bytes.
  const Setting setting = two_tiers(4);
  const double bytes = 512.0 * 1024 * 2;
  const double inside = 2e-6 + bytes / 100e9, across = 2e-6 + 4e-6 + bytes / 4e9;
  ParallelPlan plan = test::plan_of(1, 1, 16, 1);
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble}) {
    plan.schedule = kind;
    const Prediction priced = Simulator(setting).run(plan);
    ASSERT_EQ(priced.status, Status::ok);
    EXPECT_NEAR(priced.breakdown[TimeClass::pipeline_comm].value(), 2 * (12 * inside + 3 * across), 1e-12);
    SimulateOptions options;
    options.mode = ExecutionMode::flattened;
    const Prediction executed = Simulator(setting, options).run(plan);
    EXPECT_NEAR(executed.step_time.value(), priced.step_time.value(), 1e-9 * priced.step_time.value());
  }
}

TEST(PipelineBoundaries, ASickLinkCostsOncePerMessageThatCrossesIt) {
  // Link 0 takes rank 0 up to the switch of its node, so the first boundary's messages down; what comes back
  // comes by another link: of the microbatch's two messages over the boundary one is late, in both modes.
  const Setting setting = two_tiers(2);
  const ParallelPlan plan = test::plan_of(1, 1, 8, 1);
  const double healthy = Simulator(setting).run(plan).step_time.value();
  const double sick = Simulator(setting).run(plan, {{{0, 1, Seconds(1e-3)}}}).step_time.value();
  EXPECT_NEAR(sick, healthy + 1e-3, 1e-12);
  SimulateOptions executes;
  executes.mode = ExecutionMode::flattened;
  const double executed = Simulator(setting, executes).run(plan, {{{0, 1, Seconds(1e-3)}}}).step_time.value();
  EXPECT_NEAR(executed, sick, 1e-9 * sick);
}

TEST(PipelineBoundaries, TheRingOfAnInterleavedScheduleClosesOverItsOwnLinks) {
  // 4 stages on one node and 2 chunks: all boundaries alike, also from the last stage to the first. On two
  // nodes the closing one crosses them as the middle one does; a microbatch passes v p - 1 boundaries each
  // way, every boundary but the closing one v times.
  const auto comm = [&](std::int64_t nodes, std::int32_t stages) {
    Setting setting = two_tiers(nodes);
    setting.model.layers = 2 * stages;
    setting.workload = test::training(kSequence, stages);
    ParallelPlan plan = test::plan_of(1, 1, stages, 1);
    plan.schedule = ScheduleKind::interleaved;
    plan.virtual_stages = 2;
    SimulateOptions reference;
    reference.reference = true;
    const Prediction fast = Simulator(setting).run(plan), plain = Simulator(setting, reference).run(plan);
    EXPECT_NEAR(fast.step_time / plain.step_time, 1, 1e-9);
    return fast.breakdown[TimeClass::pipeline_comm].value();
  };
  const double bytes = 512.0 * 1024 * 2;
  const double inside = 2e-6 + bytes / 100e9, across = 2e-6 + 4e-6 + bytes / 4e9;
  // The first microbatch's way down and up again bounds the step from below.
  EXPECT_GE(comm(1, 4), 2 * 7 * inside * (1 - 1e-9));
  EXPECT_GE(comm(2, 8), 2 * (12 * inside + 3 * across) * (1 - 1e-9));
}

TEST(IdealScaling, ZeroBubbleIsNeverSlowerThan1f1bAndFillsItsBubble) {
  // Stages that are equal but for the lookup of the embedding and the final norm.
  Setting setting = ideal(4, 16);
  setting.model.vocabulary = 1;
  ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  const Prediction plain = Simulator(setting).run(plan);
  plan.schedule = ScheduleKind::zero_bubble;
  Details details;
  const Prediction out = Simulator(setting).run(plan, {}, &details);
  ASSERT_EQ(out.status, Status::ok);
  const double f = details.stage_forward[1].value(), bw = details.stage_backward[1].value();
  const double spared = (plain.step_time - out.step_time).value();
  // 1F1B's bubble is (p - 1) (F + B + W): what is spared is 2 (p - 1) W, and dgrad + wgrad are most of B + W.
  EXPECT_GT(spared, 0.3 * 2 * 3 * bw);
  EXPECT_LT(spared, 0.5 * 2 * 3 * bw * 1.001);
  EXPECT_GE(plain.breakdown[TimeClass::bubble].value(), 3 * (f + bw) * (1 - 1e-9));
  const double reference = Simulator(setting, {true, false}).run(plan).step_time.value();
  EXPECT_NEAR(out.step_time.value(), reference, 1e-9 * reference);
}

TEST(IdealScaling, TensorParallelApproachesDivisionForLargeLayers) {
  Setting setting = ideal(8, 8);
  setting.model = test::gpt(2, 8192, 64, 32000, kSequence);
  setting.workload = test::training(2048, 8);
  setting.model.max_positions = 2048;
  setting.system.device.kernel_latency = Seconds(0);
  Setting alone = setting;
  alone.system.fabric = test::crossbar(1);
  SimulateOptions options;
  options.time_infeasible = true;
  ParallelPlan plan = test::plan_of(8, 1, 1, 1);
  plan.sequence_parallel = true;
  const double ratio =
      Simulator(alone, options).run(test::plan_of(1, 1, 1, 1)).breakdown[TimeClass::compute] /
      Simulator(setting, options).run(plan).breakdown[TimeClass::compute];
  EXPECT_GT(ratio, 6.5);  // tiles and waves quantise the rest
  EXPECT_LT(ratio, 8.5);
}

}  // namespace
}  // namespace shardscape
