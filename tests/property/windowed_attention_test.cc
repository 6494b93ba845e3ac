// Attention that meets the last tokens only: is its backward slower than its forward, and are the blocks at the edges
// of a window counted in both?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/compute/fused_attention.h"
#include "engine/compute/prompt_blocks.h"
#include "engine/spec/causal_window.h"
#include "sweep/yaml/load.h"
#include "tests/support/paths.h"

namespace shardscape::compute {
namespace {

AttentionShape windowed(double tokens, double window, double heads, double head_dim) {
  AttentionShape shape;
  shape.batch = 1;
  shape.heads = shape.kv_heads = heads;
  shape.head_dim = head_dim;
  shape.queries = shape.keys = tokens;
  shape.visible = visible_share(tokens, window);
  return shape;
}

template <class Visit>
void each_device(const Visit& visit) {
  const yaml::Catalog catalog({test::source_dir()});
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::device)) {
    const auto device = yaml::load_device(catalog, entry.name);
    ASSERT_TRUE(device) << entry.name;
    visit(*device);
  }
}

TEST(WindowedAttention, BackwardIsNeverQuickerThanForwardAndLongerWindowsNeverQuicker) {
  constexpr double kSame = 1 - 1e-12;
  each_device([&](const DeviceSpec& device) {
    for (const AttentionKernel kernel : enum_values<AttentionKernel>()) {
      if (!is_fused(kernel)) continue;
      for (const double tokens : {64., 200., 1024., 4096., 32768.})
        for (const double heads : {1., 8., 64.})
          for (const double head_dim : {32., 64., 128., 256.}) {
            double forward_before = 0, backward_before = 0;
            for (const double window :
                 {1., 16., 100., 128., 129., 256., 1000., 1024., 4000., 16384., 32768.}) {
              SCOPED_TRACE(fmt::format("{} {}: {} tokens, {} heads, {} wide, window {}", device.name,
                                       name_of(kernel), tokens, heads, head_dim, window));
              const AttentionShape shape = windowed(tokens, window, heads, head_dim);
              const double forward = fused_forward(shape, kernel, Precision::bf16, device).time.value();
              const double backward = fused_backward(shape, kernel, Precision::bf16, device).time.value();
              EXPECT_GE(backward, forward);
              EXPECT_GE(forward, kSame * forward_before);
              EXPECT_GE(backward, kSame * backward_before);
              forward_before = forward, backward_before = backward;
            }
          }
    }
  });
}

/// Blocks of 128 queries by 128 keys of which a causal mask with this window leaves anything.
struct Blocks {
  double all = 0, most = 0;  ///< most: of one block of queries
};
Blocks count_blocks(int tokens, int window) {
  Blocks count;
  for (int query = 0; query < tokens; query += 128) {
    double here = 0;
    for (int key = 0; key <= query; key += 128)
      if (key + 127 > query - window) ++here;
    count.all += here;
    count.most = std::max(count.most, here);
  }
  return count;
}

TEST(WindowedAttention, ReadsTheBlocksAtTheEdgesOfAWindow) {
  for (const int window : {128, 256, 512, 1024, 4096}) {
    const Blocks counted = count_blocks(8192, window);
    const PromptBlocks blocks = prompt_blocks(windowed(8192, window, 1, 128), 128);
    EXPECT_NEAR(blocks.seen * blocks.blocks / (128 * counted.all), 1, 0.02) << window;
    EXPECT_NEAR(blocks.most, 128 * counted.most, 1e-6) << window;
  }
}

TEST(WindowedAttention, BackwardComputesTheBlocksAtTheEdgesOfAWindow) {
  // Bound by products, time but for the launches grows with the scores that are made; half of all without a window.
  const yaml::Catalog catalog({test::source_dir()});
  const DeviceSpec device = yaml::load_device(catalog, "a100-sxm-80gb").value();
  const auto seconds = [&](double window) {
    return (flash_backward(windowed(8192, window, 64, 128), Precision::bf16, device).time -
            3 * device.kernel_latency)
        .value();
  };
  for (const int window : {128, 256, 512, 1024})
    EXPECT_NEAR(seconds(window) / seconds(0),
                count_blocks(8192, window).all * 128 * 128 / (8192.0 * 8192 / 2),
                0.035 * seconds(window) / seconds(0))
        << window;
  // Of the window of one block: two and a half times the products of forward, at nearly its rate.
  const AttentionShape shape = windowed(4096, 128, 32, 128);
  const auto cudnn = AttentionKernel::cudnn;
  const double ratio = fused_backward(shape, cudnn, Precision::bf16, device).time /
                       fused_forward(shape, cudnn, Precision::bf16, device).time;
  EXPECT_GT(ratio, 1.5);
  EXPECT_LT(ratio, 3);
}

}  // namespace
}  // namespace shardscape::compute
