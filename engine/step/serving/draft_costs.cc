// Makes the setting and the plan of a drafting model, and times and weighs what it does.
#include "engine/step/serving/draft_costs.h"

#include <utility>

#include "engine/memory/memory.h"
#include "engine/model/block_kinds.h"
#include "engine/model/parameters.h"

namespace shardscape::step {

namespace {

/// The model of one layer, the last of its own, that drafts by itself.
ModelSpec own_module(ModelSpec model) {
  model.layers = 1;
  if (model.moe) {
    model.moe->first_dense_layers = 0;
    model.moe->every = 1;
  }
  model.window_pattern.clear();
  model.sliding_window = 0;
  return model;
}

Setting draft_setting(const Setting& target) {
  Setting setting = target;
  Speculation& speculation = setting.workload.load->speculation;
  setting.model =
      speculation.method == DraftMethod::draft_model ? *speculation.draft_model : own_module(setting.model);
  speculation = {};
  setting.system.stack.host.decode_step_fixed = Seconds(0);
  setting.system.stack.host.decode_sequence = setting.system.stack.host.decode_stream = Seconds(0);
  return setting;
}

}  // namespace

Draft::Draft(const Setting& target)
    : setting(draft_setting(target)),
      layers{model::all_layers(setting.model)},
      shares_ends(target.workload.load->speculation.method == DraftMethod::mtp) {}

ParallelPlan Draft::plan(ParallelPlan plan) const {
  plan.pipeline = 1;
  plan.virtual_stages = 1;
  if (!setting.model.moe) plan.expert = plan.expert_tensor = 1, plan.redundant_experts = 0;
  std::int32_t tensor = plan.tensor;
  while (tensor > 1 &&
         (plan.tensor % tensor != 0 || model::tensor_rule(setting.model, tensor) != Reason::none))
    --tensor;
  plan.data *= plan.tensor / tensor;
  plan.tensor = tensor;
  return plan;
}

serving::Timer with_drafts(std::int64_t draft_tokens, SequenceHost host, serving::Timer verify,
                           serving::Timer draft) {
  return [=, verify = std::move(verify), draft = std::move(draft)](const serving::Iteration& iteration) {
    serving::Iteration verified = iteration;
    const auto drafts = static_cast<double>(draft_tokens);
    verified.decoding *= 1 + drafts;
    verified.cached *= 1 + drafts;
    serving::IterationTime time = verify(verified);
    time[TimeClass::host] += iteration.decoding * (host.accepted - drafts * host.token);
    serving::add(time, draft(iteration), 1);
    if (iteration.decoding <= 0 || draft_tokens == 1) return time;
    serving::Iteration decoding;
    decoding.decoding = iteration.decoding;
    decoding.cached = iteration.cached;
    serving::add(time, draft(decoding), drafts - 1);
    return time;
  };
}

MemoryUse draft_memory(const Draft& draft, const ParallelPlan& target, double requests, double tokens) {
  const ParallelPlan plan = draft.plan(target);
  model::StageParameters parameters =
      model::stage_parameters(draft.setting.model, draft.setting.policy(), plan);
  if (draft.shares_ends) parameters.embedding = parameters.head = {};
  const memory::MemoryInputs inputs{draft.setting, plan, draft.layers, parameters, {}, {}};
  const MemoryUse all = memory::inference_stage(inputs, 0, requests, tokens);
  MemoryUse use;
  use.weights = all.weights;
  use.kv_cache = all.kv_cache;
  return use;
}

}  // namespace shardscape::step
