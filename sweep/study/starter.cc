// Chooses the values of each axis from the shapes of the model and of the machine, and writes them with their comments.
#include "sweep/study/starter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "engine/base/words.h"
#include "engine/spec/schedule_kind.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

namespace {

using Values = std::vector<std::int64_t>;

/// Parts of a sequence that are shorter give attention too little work to hide what its ranks send each other.
constexpr std::int64_t kLeastTokens = 2048;

/// Powers of two up to `most` for which `good` holds; 1 at least.
Values powers_of_two(std::int64_t most, const std::function<bool(std::int64_t)>& good) {
  Values values = {1};
  for (std::int64_t value = 2; value <= most; value *= 2)
    if (good(value)) values.push_back(value);
  return values;
}

std::string text_of(const Values& values) {
  if (values.size() == 1) return std::to_string(values.front());
  return fmt::format("[{}]", joined(values, ", ", [](std::int64_t value) { return std::to_string(value); }));
}

class StarterWriter {
 public:
  explicit StarterWriter(const Starter& starter) : starter_(starter), model_(starter.model) {}

  std::string write() {
    note("", "Lines that begin with # are comments; a key may have one value or a list, which is an axis.");
    reference("model", starter_.model_reference, "of `shardscape presets`; or a path");
    reference("cluster", starter_.cluster_reference, "of `shardscape presets`; or a path");
    key("", "gpus", std::to_string(starter_.gpus), "all of them; a list compares numbers of GPUs");
    reference("stack", starter_.stack_reference,
              training() ? "the software: megatron-core, fsdp, torchtitan, ..."
                         : "the software: vllm, sglang, trtllm, ...");
    text_ += "workload:\n";
    key("  ", "phase", std::string(name_of(starter_.phase)), training() ? "" : "serving");
    training() ? write_training() : write_serving();
    return std::move(text_);
  }

 private:
  /// What the user gave for a key; else the value that the study has by itself.
  [[nodiscard]] std::string given(std::string_view name, std::string otherwise) const {
    const auto found = starter_.given.find(name);
    return found == starter_.given.end() ? otherwise : found->second;
  }
  [[nodiscard]] bool has(std::string_view name) const { return starter_.given.contains(name); }
  [[nodiscard]] bool training() const { return starter_.phase == Phase::training; }
  void note(const std::string& indent, const std::string& comment) {
    text_ += indent + "# " + comment + '\n';
  }
  void key(const std::string& indent, const std::string& name, const std::string& value,
           const std::string& comment) {
    constexpr std::size_t kComments = 44;  // column
    std::string line = fmt::format("{}{}: {}", indent, name, value);
    if (!comment.empty()) line = fmt::format("{:<{}} # {}", line, kComments - 1, comment);
    text_ += line + '\n';
  }
  /// A key of the workload that the user may give.
  void load(std::string_view name, std::string otherwise) {
    const auto row = std::ranges::find(kStarterKeys, name, &StarterKey::name);
    key("  ", std::string(name), given(name, std::move(otherwise)), row->meaning);
  }
  void reference(const std::string& name, const std::string& value, const std::string& comment) {
    std::string text = yaml::emit(yaml::Node::scalar(value));
    std::erase(text, '\n');
    key("", name, text, comment);
  }

  void precision(PolicyName chosen) {
    std::string value = given("precision", std::string(name_of(chosen)));
    std::vector<std::string> names;
    yaml::Diagnostics ignored;  // the study says what is wrong with it
    const std::optional<yaml::Node> read = yaml::parse(value, "", ignored);
    if (read && read->is_list()) {
      for (const yaml::Node& item : read->items) names.push_back(item.text);
      value = fmt::format("[{}]", fmt::join(names, ", "));
    } else if (read && read->is_scalar()) {
      value = read->text;
      names = {value};
    }
    std::vector<std::string_view> others;
    for (const PolicyName name : {PolicyName::bf16, PolicyName::fp16, PolicyName::fp8, PolicyName::fp4})
      if (std::ranges::find(names, name_of(name)) == names.end() && multiplies(name))
        others.push_back(name_of(name));
    const std::string comment = others.empty() ? "" : fmt::format("or {}", fmt::join(others, ", "));
    key("  ", "precision", value, comment);
  }
  [[nodiscard]] bool multiplies(PolicyName name) const {
    return starter_.cluster.device.tensor_peak(format_of(name)).value() > 0;
  }
  [[nodiscard]] PolicyName widest() const {
    return multiplies(PolicyName::bf16) || !multiplies(PolicyName::fp16) ? PolicyName::bf16
                                                                         : PolicyName::fp16;
  }

  /// GPUs of the innermost scale-up dimensions, a node.
  [[nodiscard]] std::int64_t node() const {
    Problems problems;
    const FabricSpec fabric = starter_.cluster.fabric.instantiate(starter_.gpus, problems);
    std::int64_t gpus = 1;
    for (const DimensionSpec& dimension : fabric.dimensions) {
      if (dimension.scope != LinkScope::scale_up) break;
      gpus *= dimension.size();
    }
    return gpus;
  }
  [[nodiscard]] bool divides_gpus(std::int64_t degree) const { return starter_.gpus % degree == 0; }

  [[nodiscard]] Values tensor() const {
    constexpr std::int64_t kMost = 16;
    return powers_of_two(std::min(node(), kMost),
                         [&](std::int64_t n) { return divides_gpus(n) && model_.heads % n == 0; });
  }
  [[nodiscard]] Values stages() const {
    constexpr std::int64_t kMost = 16, kMostServing = 4;
    // Stacks that train count embedding and loss as layers, or deal those of mixtures unevenly.
    const bool ends = training();
    const auto good = [&](std::int64_t n) {
      return divides_gpus(n) && n <= model_.layers &&
             (model_.layers % n == 0 || (ends && ((model_.layers + 2) % n == 0 || model_.moe)));
    };
    const std::int64_t nodes = std::max<std::int64_t>(2, starter_.gpus / node());
    return powers_of_two(ends ? kMost : std::min(kMostServing, nodes), good);
  }
  /// Tokens of a sample; of several lengths of the longest.
  [[nodiscard]] std::int64_t tokens() const {
    constexpr std::int64_t kTokens = 4096, kLongest = std::int64_t{1} << 40;
    const std::string text = given("sequence_length", "");
    std::int64_t longest = 0, number = 0;
    for (const char c : text) {
      number = c >= '0' && c <= '9' ? std::min(10 * number + (c - '0'), kLongest) : 0;
      longest = std::max(longest, number);
    }
    if (longest > 0) return longest;
    return model_.max_positions > 0 ? std::min(kTokens, model_.max_positions) : kTokens;
  }
  [[nodiscard]] Values context() const {
    constexpr std::int64_t kMost = 32;
    return powers_of_two(std::min(kMost, tokens() / kLeastTokens),
                         [&](std::int64_t n) { return divides_gpus(n) && tokens() % (2 * n) == 0; });
  }
  /// Powers of two, and the largest number that divides both experts and GPUs.
  [[nodiscard]] Values experts() const {
    constexpr std::int64_t kMost = 64;
    if (!model_.moe || starter_.gpus == 1) return {1};
    const auto good = [&](std::int64_t n) { return divides_gpus(n) && model_.moe->experts % n == 0; };
    const std::int64_t most = std::min(starter_.gpus, kMost);
    Values ranks = powers_of_two(most, [&](std::int64_t n) { return n > 2 && good(n); });
    for (std::int64_t n = most; n > ranks.back(); --n)
      if (good(n)) ranks.push_back(n);
    return ranks;
  }
  void write_degrees() {
    note("", "Every combination of these values is a point. More axes: shardscape help study");
    text_ += "space:\n";
    key("  ", "tensor_parallel", text_of(tensor()), "each layer over so many GPUs of a node");
    if (training() && tensor().size() > 1)
      key("  ", "sequence_parallel", "true", "norms split over them, too; [false, true] compares");
    if (training())
      key("  ", "context_parallel", text_of(context()),
          fmt::format("ranks of a sample, each with {} tokens or more", kLeastTokens));
    key("  ", "pipeline_parallel", text_of(stages()), "the layers over so many stages");
    key("  ", "data_parallel", "fill", "replicas: what the other degrees leave of the GPUs");
    if (experts().size() > 1)
      key("  ", "expert_parallel", text_of(experts()), "experts over so many ranks of the other axes");
  }

  /// A batch of which every number of replicas has a whole share, and large machines have enough.
  [[nodiscard]] std::int64_t batch() const {
    constexpr std::int64_t kLeast = 256, kEnough = 2048;
    std::int64_t samples = starter_.gpus;
    while (samples % 2 == 0) samples /= 2;
    while (samples < std::clamp(starter_.gpus, kLeast, kEnough)) samples *= 2;
    return samples;
  }

  void write_training() {
    load("sequence_length", std::to_string(tokens()));
    load("global_batch", std::to_string(batch()));
    precision(widest());
    write_degrees();
    if (starter_.gpus > 1)
      key("  ", "zero_stage", "[1, 3]", "sharded: 1 optimizer, 2 and gradients, 3 and weights");
    key("  ", "recompute", "[none, selective, full]", "activations computed again, for memory");
    key("  ", "microbatch_size", "[1, 2, 4]", "samples that a stage works on at once");
    if (stages().size() > 1) {
      std::vector<ScheduleKind> others;
      for (const ScheduleKind kind : enum_values<ScheduleKind>())
        if (kind != kPlainSchedule && kind != kChunkedSchedule) others.push_back(kind);
      key("  ", "schedule", fmt::format("[{}, {}]", name_of(kPlainSchedule), name_of(kChunkedSchedule)),
          "also " + joined(others, ", ", name_of<ScheduleKind>));
      key("  ", "virtual_stages", "[2, 4]", "parts of the model per stage, interleaved");
    }
    key("", "objectives", "[step_time_s, memory_peak_bytes]", "the first ranks; their Pareto front is kept");
    const bool staged = stages().size() > 1 && starter_.stack_reference.starts_with("megatron");
    if (starter_.gpus > 1 && staged)
      key("", "constraints", "[\"zero < 2 or pp == 1\"]", "Megatron-LM has no ZeRO 2 and 3 over stages");
    else
      note("", "constraints: [\"memory <= 70 GB\", \"tp * pp <= 32\"]");
    note("", "hardware: {device.hbm.bandwidth: [3 TB/s, 5 TB/s]}      # what-ifs: any number of the machine");
  }

  void write_serving() {
    const std::int64_t most = model_.max_positions > 0 ? model_.max_positions : 4096;
    const std::int64_t answer = std::clamp<std::int64_t>(most / 2, 1, 256);
    load("prompt_tokens", std::to_string(std::clamp<std::int64_t>(most - answer, 1, 2048)));
    load("output_tokens", std::to_string(answer));
    const std::int64_t n = starter_.gpus;
    const bool rated = has("request_rate");
    if (rated) load("request_rate", "");
    if (!rated || has("concurrency")) load("concurrency", text_of({n, 8 * n, 32 * n}));
    if (!rated) note("  ", "request_rate: [2 /s, 8 /s]            # in its place: requests come at a rate");
    // The GPUs that the weights of a replica may lie on.
    const std::int64_t group = std::max(tensor().back() * stages().back(), experts().back());
    const double memory =
        starter_.cluster.device.memory_capacity().value() * static_cast<double>(std::min(group, n));
    const bool full = 2 * model_.parameters() > 0.8 * memory;
    const bool as_stored = starter_.checkpoint && multiplies(*starter_.checkpoint);
    if (starter_.checkpoint)
      note("  ", fmt::format("the checkpoint's weights are in {}{}", name_of(*starter_.checkpoint),
                             as_stored ? "" : ", which the device does not multiply"));
    precision(as_stored                             ? *starter_.checkpoint
              : full && multiplies(PolicyName::fp8) ? PolicyName::fp8
                                                    : widest());
    write_degrees();
    if (n > 1) {
      const std::int64_t pool = n / 2;
      Values degrees = tensor();
      std::erase_if(degrees, [&](std::int64_t degree) { return pool % degree != 0; });
      note("  ", fmt::format("{:<37} # of them, for a pool that only reads prompts,",
                             fmt::format("prefill_gpus: [0, {}]", pool)));
      note("  ",
           fmt::format("{:<37} # with degrees of its own", "prefill_tensor_parallel: " + text_of(degrees)));
    }
    // Servers that keep up with a rate give as many tokens a second.
    if (rated)
      key("", "objectives", "[e2e_s, tokens_per_s_per_gpu]", "the first ranks; also ttft_s, itl_s");
    else
      key("", "objectives", "[tokens_per_s_per_gpu, itl_s]", "the first ranks; also ttft_s, e2e_s");
    if (has("promises"))
      key("", "promises", given("promises", ""), "see `shardscape capacity`");
    else
      note("",
           "promises: {ttft_p95: 2 s, tpot_p95: 40 ms}    # with request_rate; see `shardscape capacity`");
  }

  const Starter& starter_;
  const ModelSpec& model_;
  std::string text_;
};

}  // namespace

std::string starter_text(const Starter& starter) { return StarterWriter(starter).write(); }

}  // namespace shardscape::sweep
