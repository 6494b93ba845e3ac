#include "sweep/launch/said_items.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/spec/plan_axes.h"
#include "sweep/launch/data_files.h"
#include "sweep/launch/read_words.h"
#include "sweep/yaml/specs.h"

namespace shardscape::launch {

namespace {

/// stack_keys.yaml, in its order.
struct StackKeys {
  struct Choice {
    std::string key;
    Phases phases;
    sweep::Expression idle;  ///< when it has no effect
  };
  std::vector<std::string> measured;
  std::vector<Choice> choices;
  Vocabulary words;

  [[nodiscard]] const Choice* find(std::string_view key) const {
    const auto found = std::ranges::find(choices, key, &Choice::key);
    return found == choices.end() ? nullptr : &*found;
  }
};

void read_choices(yaml::Reader& map, const char* group, Phases phases, StackKeys& keys) {
  const yaml::Node* const all = map.take(group);
  if (all == nullptr) return;
  map.optional_group(group, [&](yaml::Reader& inner) {
    for (const yaml::Entry& entry : all->entries) {
      inner.take(entry.key.c_str());
      StackKeys::Choice& choice = keys.choices.emplace_back(StackKeys::Choice{entry.key, phases, {}});
      read_parsed(inner, entry.key.c_str(), entry.value, choice.idle,
                  [&](const std::string& text) { return keys.words.condition(text); });
    }
  });
}

const StackKeys& stack_keys() {
  static const StackKeys kKeys = [] {
    StackKeys keys;
    yaml::Diagnostics diagnostics;
    if (const auto root =
            yaml::parse(std::string(data::stack_keys()), "sweep/launch/stack_keys.yaml", diagnostics)) {
      yaml::ReadState state(root->where, "", diagnostics);
      yaml::Reader map(*root, "", state);
      map.words("measured", keys.measured);
      read_definitions(map, keys.words);
      read_choices(map, "both", Phases::both, keys);
      read_choices(map, "training", Phases::training, keys);
      read_choices(map, "inference", Phases::inference, keys);
      map.finish();
    }
    SHARDSCAPE_CHECK(diagnostics.empty(), diagnostics.to_string());
    return keys;
  }();
  return kKeys;
}

void add_axes(const Case& of, std::vector<Item>& items) {
  const Phase phase = of.workload().phase;
  for (const PlanAxisRow& row : kPlanRows) {
    // The axes of the other pool are those of a case of its own.
    const bool other_pool = is_of_prefill(row) && row.key != PlanKey::ffn;
    if (other_pool || !applies(row.phases, phase)) continue;
    const std::int32_t code = row.get(of.plan);
    items.push_back({std::string(row.name), code_text(row, code), true, code == row.idle});
  }
  if (of.pool != Case::Pool::whole) items.push_back({"pools", "prefill and decode", true, false});
}

void add_workload(const Case& of, std::vector<Item>& items) {
  // A field that is new does not compile here.
  const auto& [phase, precision, expert_load, sequence, batch, prompt, output, concurrency, load] =
      of.workload();
  const auto add = [&](const char* key, std::string value, bool idle = false) {
    items.push_back({std::string("workload.") + key, std::move(value), false, idle});
  };
  add("precision", std::string(name_of(precision)));
  add("expert_load", std::string(name_of(expert_load.distribution)), expert_load.balanced());
  if (phase == Phase::training) {
    add("sequence_length", std::to_string(sequence));
    return add("global_batch", std::to_string(batch));
  }
  add("prompt_tokens", std::to_string(load ? load->prompt.longest : prompt));
  add("output_tokens", std::to_string(load ? load->output.longest : output));
  add("concurrency", std::to_string(concurrency), concurrency == 0);
  if (!load) return;
  add("load", load->open() ? fmt::format("{:.4g} requests/s", load->offered_per_s()) : "closed loop");
  const auto& [tokens, acceptance, method, draft_model] = load->speculation;
  const std::string drafts = method == DraftMethod::mtp ? "mtp"
                             : draft_model != nullptr   ? draft_model->name
                                                        : "draft model";
  add("speculation", fmt::format("{} tokens by {}", tokens, drafts), tokens == 0);
}

}  // namespace

std::optional<bool> is_measured(std::string_view stack_key) {
  if (stack_keys().find(stack_key) != nullptr) return false;
  if (std::ranges::any_of(stack_keys().measured,
                          [&](std::string_view row) { return covers_key(row, stack_key); }))
    return true;
  return std::nullopt;
}

std::vector<Item> said_items(const Case& of, const Facts& facts) {
  std::vector<Item> items;
  add_axes(of, items);
  add_workload(of, items);
  const Facts all = stack_keys().words.complete(facts);
  for (auto& [key, text] : leaves_of(yaml::write(of.stack()), "")) {
    if (is_measured(key).value_or(false)) continue;
    const StackKeys::Choice* const row = stack_keys().find(key);
    const bool idle =
        row != nullptr && (!applies(row->phases, of.workload().phase) || row->idle.holds(all.numbers));
    items.push_back({"stack." + key, std::move(text), false, idle});
  }
  ModelSpec usual;
  usual.moe.emplace();
  usual.latent.emplace();
  const auto plain = leaves_of(yaml::write(usual), "");
  for (auto& leaf : leaves_of(yaml::write(of.shape()), "")) {
    // Names, and what the model was published for: nothing runs otherwise for them.
    if (leaf.first == "name" || leaf.first == "source" || leaf.first == "context") continue;
    const bool idle = std::ranges::find(plain, leaf) != plain.end();
    items.push_back({"model." + leaf.first, std::move(leaf.second), false, idle});
  }
  return items;
}

}  // namespace shardscape::launch
