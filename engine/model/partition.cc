// Splits the layers over stages and chunks by the stack's layout or rule, and says why a split is impossible. The
// chunks are filled in the order in which a microbatch meets them.
#include "engine/model/partition.h"

#include <algorithm>

#include "engine/model/block_kinds.h"
#include "engine/spec/pipeline_layout.h"

namespace shardscape::model {

namespace {

/// The units that `with_ends` counts beside the layers: the embedding before them and the loss behind them.
constexpr std::int64_t kEnds = 2;

/// The chunks of a partition in the order in which a microbatch meets them; chunk c lies on stage c % stages.
class Chunks {
 public:
  Chunks(Partition& partition, const PartitionCase& of)
      : partition_(partition),
        stages_(static_cast<std::size_t>(of.stages)),
        each_(static_cast<std::size_t>(of.virtual_stages)) {
    partition_.chunks.assign(stages_ * each_, {});
  }
  [[nodiscard]] std::size_t size() const { return stages_ * each_; }
  StageLayers& operator[](std::size_t chunk) {
    return partition_.chunks[chunk % stages_ * each_ + chunk / stages_];
  }

 private:
  Partition& partition_;
  std::size_t stages_, each_;
};

void partition_balanced(const ModelSpec& model, Chunks& chunks) {
  double blocks = 0;
  for (const BlockRun& run : all_layers(model)) blocks += run.count * product_parameters(model, run.kind);
  const double head = static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  const double share = (blocks + head) / static_cast<double>(chunks.size());
  std::size_t chunk = 0;
  double cost = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::size_t kind = kind_of_layer(model, layer);
    // A block goes to the next chunk if it starts beyond this chunk's share; the one that crosses the border stays.
    while (chunk + 1 < chunks.size() && cost >= share * static_cast<double>(chunk + 1)) ++chunk;
    chunks[chunk].add(kind, 1);
    cost += product_parameters(model, kind);
  }
}

/// Fills one chunk after the other with the next layers of the model, as far as there are any.
class ChunkFiller {
 public:
  explicit ChunkFiller(const ModelSpec& model) : model_(model) {}
  void add(StageLayers& chunk, std::int64_t layers) {
    const std::int64_t count = std::min(layers, model_.layers - next_);
    if (count <= 0) return;
    chunk += layers_between(model_, static_cast<std::int32_t>(next_), static_cast<std::int32_t>(count));
    next_ += count;
  }

 private:
  const ModelSpec& model_;
  std::int64_t next_ = 0;
};

/// Gives every chunk as many units, where the embedding before the layers and the loss behind them count as one each.
void partition_with_ends(const ModelSpec& model, Chunks& chunks) {
  const std::int64_t each = (model.layers + kEnds) / static_cast<std::int64_t>(chunks.size());
  ChunkFiller filler(model);
  for (std::size_t c = 0; c < chunks.size(); ++c) filler.add(chunks[c], c == 0 ? each - 1 : each);
}

/// Deals out units: the layers, then modules of further tokens, then the loss. Modules may come to lie before the last
/// chunk.
void partition_uneven(const ModelSpec& model, std::int64_t modules, Chunks& chunks) {
  const auto count = static_cast<std::int64_t>(chunks.size());
  const std::int64_t units = model.layers + modules + 1, most = (units + count - 1) / count;
  const bool fills = most * (count - 1) < units;
  std::int64_t unit = 0;
  ChunkFiller filler(model);
  for (std::int64_t c = 0; c < count; ++c) {
    const std::int64_t each = fills ? most : units / count + (c < units % count ? 1 : 0);
    const std::int64_t end = std::min(units, unit + each);
    StageLayers& chunk = chunks[static_cast<std::size_t>(c)];
    filler.add(chunk, std::min(end, model.layers) - unit);
    const std::int64_t further = std::min(end, model.layers + modules) - std::max(unit, model.layers);
    if (further > 0) chunk.add_further(static_cast<std::int32_t>(further));
    unit = end;
  }
}

void partition_laid_out(const ModelSpec& model, const PipelineLayout& layout, Chunks& chunks) {
  ChunkFiller filler(model);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    filler.add(chunks[c], layout.stages[c].layers);
    chunks[c].add_further(layout.stages[c].further);
  }
}

/// The stack's rule, but uneven for models with experts: recipes write their layers out where they do not divide.
PartitionRule rule_for(const ModelSpec& model, const StackProfile& stack) {
  const bool laid_out = stack.partition == PartitionRule::with_ends && model.moe;
  return laid_out ? PartitionRule::uneven : stack.partition;
}

bool has_layout(const StackProfile& stack, Phase phase) {
  return phase == Phase::training && !stack.pipeline_layout.empty();
}

Reason layout_rule(const ModelSpec& model, const StackProfile& stack, std::int64_t chunks,
                   std::int64_t modules) {
  const auto layout = read_layout(stack.pipeline_layout);
  const bool fits = layout && layout->layers() == model.layers && layout->further() == modules &&
                    static_cast<std::int64_t>(layout->stages.size()) == chunks;
  return fits ? Reason::none : Reason::layout;
}

}  // namespace

std::int32_t further_modules(const ModelSpec& model, Phase phase) {
  return phase == Phase::training && model.moe ? static_cast<std::int32_t>(model.moe->mtp_layers) : 0;
}

Reason partition_rule(const ModelSpec& model, const StackProfile& stack, const PartitionCase& of) {
  const std::int64_t chunks = static_cast<std::int64_t>(of.stages) * of.virtual_stages;
  const std::int64_t modules = further_modules(model, of.phase);
  if (has_layout(stack, of.phase)) return layout_rule(model, stack, chunks, modules);
  // Balanced stages may hold no block at all; with virtual stages only the first and the last chunk may, as they have
  // embedding and head.
  const PartitionRule rule = rule_for(model, stack);
  std::int64_t most = model.layers;
  if (rule == PartitionRule::balanced) most = of.virtual_stages > 1 ? model.layers + kEnds : chunks;
  if (rule == PartitionRule::with_ends || rule == PartitionRule::uneven) most += kEnds;
  if (chunks > most) return Reason::fewer_layers_than_stages;
  const bool divides = model.layers % chunks == 0;
  const bool divides_with_ends = rule == PartitionRule::with_ends && (model.layers + kEnds) % chunks == 0;
  const bool any = rule == PartitionRule::balanced || rule == PartitionRule::uneven;
  return any || divides || divides_with_ends ? Reason::none : Reason::layers_by_pipeline;
}

bool partition_layers(const ModelSpec& model, const StackProfile& stack, const PartitionCase& of,
                      Partition& partition) {
  partition.stages.assign(static_cast<std::size_t>(of.stages), {});
  if (partition_rule(model, stack, of) != Reason::none) return false;
  const std::int64_t count = static_cast<std::int64_t>(of.stages) * of.virtual_stages;
  Chunks chunks(partition, of);
  const std::int32_t modules = further_modules(model, of.phase);
  const bool even = model.layers % count == 0, even_with_ends = (model.layers + kEnds) % count == 0;
  const PartitionRule rule = rule_for(model, stack);
  if (has_layout(stack, of.phase)) {
    partition_laid_out(model, *read_layout(stack.pipeline_layout), chunks);
  } else if (rule == PartitionRule::balanced && !(even && of.virtual_stages > 1)) {
    partition_balanced(model, chunks);
  } else if (even) {
    ChunkFiller filler(model);
    for (std::size_t c = 0; c < chunks.size(); ++c) filler.add(chunks[c], model.layers / count);
  } else if (even_with_ends) {
    partition_with_ends(model, chunks);
  } else {
    partition_uneven(model, modules, chunks);
  }
  std::int32_t placed = 0;
  for (const StageLayers& chunk : partition.chunks) placed += chunk.further();
  chunks[chunks.size() - 1].add_further(modules - placed);
  const auto each = static_cast<std::size_t>(of.virtual_stages);
  for (std::size_t c = 0; c < partition.chunks.size(); ++c) partition.stages[c / each] += partition.chunks[c];
  return true;
}

void fold_both_ways(Partition& partition) {
  const std::vector<StageLayers> alone = partition.stages;
  partition.chunks.clear();
  for (std::size_t s = 0; s < alone.size(); ++s) {
    const StageLayers& mirror = alone[alone.size() - 1 - s];
    partition.chunks.push_back(alone[s]);
    partition.chunks.push_back(mirror);
    // A stage and its mirror add up their layers in the same order, so that sums over them agree to the bit.
    const std::size_t down = std::min(s, alone.size() - 1 - s);
    partition.stages[s] = alone[down];
    partition.stages[s] += alone[alone.size() - 1 - down];
  }
}

}  // namespace shardscape::model
