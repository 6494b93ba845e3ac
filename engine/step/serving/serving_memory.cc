#include "engine/step/serving/serving_memory.h"

#include <algorithm>

#include "engine/model/block_kinds.h"

namespace shardscape::step {

namespace {

/// An iteration that decodes `decoding` sequences, and reads as many tokens of the others' prompts as fit beside them.
serving::Iteration iteration(const Setting& setting, std::int64_t sequences, std::int64_t decoding) {
  const StackProfile::Serving& stack = setting.system.stack.serving;
  const std::int64_t prompt = setting.workload.longest_prompt(), reading = sequences - decoding;
  const bool chunked = reads_beside(stack.scheduler);
  // Number of prompts in one budget.
  const std::int64_t whole = std::max<std::int64_t>(1, stack.token_budget / prompt);
  const std::int64_t tokens =
      chunked ? std::min(stack.token_budget - decoding, reading * prompt) : std::min(whole, reading) * prompt;
  const double longest = static_cast<double>(prompt + setting.workload.longest_output()) - 1;
  serving::Iteration result;
  const std::int64_t verified = setting.workload.load ? setting.workload.load->speculation.verified() : 1;
  result.decoding = static_cast<double>(decoding * verified);
  result.cached = result.decoding * longest;
  result.prompt_tokens = static_cast<double>(tokens);
  result.prompt_pairs = result.prompt_tokens * static_cast<double>(prompt);
  // The pieces may be the end of one prompt, whole prompts, and the beginning of another.
  result.first_tokens = static_cast<double>(std::min(reading, (tokens + prompt - 1) / prompt));
  return result;
}

}  // namespace

std::int64_t sequences_at_once(const Setting& setting, const ParallelPlan& plan, std::int64_t requests) {
  const std::int64_t groups = std::min<std::int64_t>(plan.pipeline, requests);
  return std::min((requests + groups - 1) / groups, setting.system.stack.serving.max_batch);
}

std::vector<serving::Iteration> largest_iterations(const Setting& setting, std::int64_t sequences,
                                                   ServerWork work) {
  const StackProfile::Serving& stack = setting.system.stack.serving;
  const std::int64_t prompt = setting.workload.longest_prompt();
  std::vector<std::int64_t> decoding;
  if (work != ServerWork::decoding) decoding.push_back(0);
  // Reading the prompt yields the first token, so a server of requests of one token never decodes.
  const bool decodes = setting.workload.longest_output() > 1 || work == ServerWork::decoding;
  if (work != ServerWork::prompts && decodes) decoding.push_back(sequences);
  if (work == ServerWork::both && decodes && reads_beside(stack.scheduler) && prompt > 1) {
    // With more decoding sequences than `bend` the prompts that are left no longer fill the budget: the
    // maximum lies there or one beyond (see the header).
    const std::int64_t bend = (sequences * prompt - stack.token_budget) / (prompt - 1);
    for (const std::int64_t count : {bend, bend + 1})
      if (count > 0 && count < sequences) decoding.push_back(count);
  }
  std::vector<serving::Iteration> result;
  for (const std::int64_t count : decoding) result.push_back(iteration(setting, sequences, count));
  return result;
}

memory::ActivationBytes serving_activations(const Setting& setting, const ParallelPlan& plan,
                                            const std::vector<serving::Iteration>& iterations) {
  memory::ActivationBytes most;
  const double row = 4.0 * static_cast<double>(setting.model.vocabulary) / plan.tensor;
  for (const serving::Iteration& it : iterations) {
    model::LayerKey key = model::serving_layer_key(plan, 1);
    const bool reads = it.prompt_tokens > 0;
    const auto tokens = static_cast<std::int64_t>(it.prompt_tokens + it.decoding);
    if (!reads) key.microbatch = static_cast<std::int32_t>(it.decoding);
    for (std::size_t kind = 0, kinds = model::block_kinds(setting.model).size(); kind < kinds; ++kind) {
      const Bytes block =
          reads
              ? model::serving_block_bytes(setting, kind, key, tokens, it.prompt_pairs + it.cached)
              : model::saved_bytes(model::decode_block_operators(setting, kind, key, it.cached / it.decoding),
                                   Recompute::none, setting, key, 1);
      most.block[kind].working = std::max(most.block[kind].working, block);
    }
    Bytes boundary;
    if (reads) {
      boundary = model::boundary_bytes(setting, key, tokens);
    } else {
      key.context = 1;  // every rank of the group works on all tokens
      boundary = model::boundary_bytes(setting, key, 1);
    }
    most.logits = std::max(most.logits, Bytes((it.decoding + it.first_tokens) * row));
    most.boundary = std::max(most.boundary, boundary);
  }
  return most;
}

}  // namespace shardscape::step
