#include "sweep/space/point_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/base/suggest.h"
#include "sweep/space/design_space.h"
#include "sweep/space/quote.h"

namespace shardscape::sweep {

namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

constexpr std::array<std::string_view, 11> kTrainingKeys = {
    "tp", "sp", "cp", "pp", "dp", "zero", "recompute", "mbs", "schedule", "vpp", "order"};
constexpr std::array<std::string_view, 9> kInferenceKeys = {
    "tp", "cp", "pp", "dp", "prefill_tp", "prefill_pp", "prefill_dp", "order", "concurrency"};

std::span<const std::string_view> keys_of(Phase phase) {
  if (phase == Phase::training) return kTrainingKeys;
  return kInferenceKeys;
}

/// Reads "key=value,..." and turns values into axes, collecting every problem on the way.
class PointParser {
 public:
  PointParser(const SpaceSpec& space, std::int64_t gpus, Phase phase)
      : space_(space), gpus_(gpus), phase_(phase) {}

  tl::expected<PointText, Problems> parse(std::string_view text) {
    split(text);
    PointText point;
    set_prefill(point.plan.prefill);
    set_degrees(point.plan);
    set_axes(point.plan);
    point.concurrency = whole("concurrency", 1, std::numeric_limits<std::int64_t>::max());
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    point.plan = canonical(point.plan, phase_);
    return point;
  }

 private:
  void split(std::string_view text) {
    if (trim(text).empty()) return;  // every axis at its first value
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      add_entry(trim(text.substr(begin, end - begin)));
      begin = end + 1;
    }
  }

  void add_entry(std::string_view entry) {
    const std::size_t sign = entry.find('=');
    if (sign == std::string_view::npos) {
      return problems_.add(std::string(entry), "write it as key=value, such as tp=8");
    }
    const std::string_view key = trim(entry.substr(0, sign));
    const auto known = keys_of(phase_);
    if (std::ranges::find(known, key) == known.end()) {
      return problems_.add(std::string(key), unknown_key(key));
    }
    if (find(key)) return problems_.add(std::string(key), "is given twice");
    entries_.emplace_back(key, trim(entry.substr(sign + 1)));
  }

  [[nodiscard]] std::string unknown_key(std::string_view key) const {
    const auto other = keys_of(phase_ == Phase::training ? Phase::inference : Phase::training);
    if (std::ranges::find(other, key) != other.end()) {
      return "has no meaning for " + std::string(name_of(phase_)) +
             "; known keys: " + join_names(keys_of(phase_));
    }
    return "unknown key" + did_you_mean(key, keys_of(phase_)) +
           "; known keys: " + join_names(keys_of(phase_));
  }

  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const {
    const auto found =
        std::ranges::find(entries_, key, &std::pair<std::string_view, std::string_view>::first);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }

  /// The value of a key as an integer of a range; nothing where it is absent or wrong (then with a problem).
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t low, std::int64_t high) {
    const std::optional<std::string_view> text = find(key);
    if (!text) return std::nullopt;
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error == std::errc() && stop == text->data() + text->size() && value >= low && value <= high)
      return value;
    const std::string range = high == std::numeric_limits<std::int64_t>::max()
                                  ? " of at least " + std::to_string(low)
                                  : " from " + std::to_string(low) + " to " + std::to_string(high);
    problems_.add(std::string(key), quote(*text) + " is not a whole number" + range);
    return std::nullopt;
  }

  template <class E>
  E choice(std::string_view key, E fallback) {
    const std::optional<std::string_view> text = find(key);
    if (!text) return fallback;
    if (const std::optional<E> value = parse_enum<E>(*text)) return *value;
    problems_.add(std::string(key), quote(*text) + " is not one of " + join_names(enum_names<E>()) +
                                        did_you_mean(*text, enum_names<E>()));
    return fallback;
  }

  /// The pool that prefills: the first one of the space unless the text says otherwise.
  void set_prefill(PrefillPool& pool) {
    if (phase_ == Phase::training) return;
    const std::int64_t most = gpus_ - 1;
    const auto degree = [&](std::string_view key, std::int32_t first) {
      return static_cast<std::int32_t>(whole(key, 1, most).value_or(first));
    };
    pool.tensor = degree("prefill_tp", space_.prefill_tensor.front());
    pool.pipeline = degree("prefill_pp", space_.prefill_pipeline.front());
    const double replica = static_cast<double>(pool.tensor) * pool.pipeline;
    const double replicas = space_.prefill_gpus.front() / replica;
    if (find("prefill_dp")) {
      pool.data = static_cast<std::int32_t>(whole("prefill_dp", 0, most).value_or(0));
    } else if (replicas == std::floor(replicas)) {
      pool.data = static_cast<std::int32_t>(replicas);
    } else {
      problems_.add("prefill_dp", "the study's " + std::to_string(space_.prefill_gpus.front()) +
                                      " GPUs to prefill make no whole replicas of prefill_tp*prefill_pp = " +
                                      std::to_string(pool.tensor) + "*" + std::to_string(pool.pipeline));
    }
    if (replica * pool.data >= static_cast<double>(gpus_)) {
      problems_.add("prefill_tp,prefill_pp,prefill_dp",
                    "their product must be less than the number of GPUs, " + std::to_string(gpus_));
      pool = {};
    }
    const bool given = find("prefill_tp") || find("prefill_pp");
    if (pool.data == 0 && given && problems_.empty())
      problems_.add("prefill_tp,prefill_pp", "have no effect without prefill_dp");
  }

  void set_degrees(ParallelPlan& plan) {
    std::int32_t* open = nullptr;
    bool readable = true;
    const auto take = [&](std::string_view key, const DegreeAxis& axis, std::int32_t& degree) {
      if (find(key)) {
        const std::optional<std::int64_t> value = whole(key, 1, gpus_);
        readable = readable && value.has_value();
        degree = static_cast<std::int32_t>(value.value_or(1));
      } else if (axis.fill) {
        open = &degree;
      } else {
        degree = axis.values.front();
      }
    };
    take("tp", space_.tensor, plan.tensor);
    take("cp", space_.context, plan.context);
    take("pp", space_.pipeline, plan.pipeline);
    take("dp", space_.data, plan.data);
    if (readable) fill(plan, open);
  }

  /// Gives the open degree, where there is one, what the others leave of the GPUs.
  void fill(ParallelPlan& plan, std::int32_t* open) {
    const double product = static_cast<double>(plan.tensor) * plan.context * plan.pipeline * plan.data;
    const std::int64_t gpus = gpus_ - plan.prefill.gpus();
    const double share = static_cast<double>(gpus) / product;
    if (open != nullptr && share >= 1 && share == std::floor(share)) *open = static_cast<std::int32_t>(share);
    if (open != nullptr ? *open == share : share == 1) return;
    const std::string degrees = "tp*cp*pp*dp = " + std::to_string(plan.tensor) + "*" +
                                std::to_string(plan.context) + "*" + std::to_string(plan.pipeline) + "*";
    const std::string data = open == &plan.data ? "dp" : std::to_string(plan.data);
    problems_.add("tp,cp,pp,dp", degrees + data + " must be the number of GPUs, " + std::to_string(gpus) +
                                     (plan.disaggregated() ? " beside those that prefill" : ""));
  }

  bool sequence_parallel() {
    const std::optional<std::string_view> text = find("sp");
    if (!text) return space_.sequence_parallel.front();
    if (*text == "1" || *text == "true") return true;
    if (*text != "0" && *text != "false")
      problems_.add("sp", quote(*text) + " is not one of 0, 1, false, true");
    return false;
  }

  void set_virtual_stages(ParallelPlan& plan) {
    const std::optional<std::int64_t> chunks = whole("vpp", 1, std::numeric_limits<std::int32_t>::max());
    plan.virtual_stages = static_cast<std::int32_t>(chunks.value_or(space_.virtual_stages.front()));
    if (chunks.value_or(1) > 1 && plan.schedule != ScheduleKind::interleaved) {
      problems_.add("vpp", "more than one virtual stage needs schedule=interleaved, not schedule=" +
                               std::string(name_of(plan.schedule)));
    }
  }

  RankOrder rank_order() {
    const std::optional<std::string_view> text = find("order");
    if (!text) return space_.rank_order.front();
    const std::optional<RankOrder> order = parse_rank_order(*text);
    if (!order)
      problems_.add("order",
                    quote(*text) + " does not name each of tp, cp, dp, pp once, as tp-cp-dp-pp does");
    return order.value_or(kDefaultRankOrder);
  }

  void set_axes(ParallelPlan& plan) {
    plan.sequence_parallel = sequence_parallel();
    plan.zero_stage = static_cast<std::int32_t>(whole("zero", 0, 3).value_or(space_.zero_stage.front()));
    plan.recompute = choice("recompute", space_.recompute.front());
    plan.microbatch = static_cast<std::int32_t>(
        whole("mbs", 1, std::numeric_limits<std::int32_t>::max()).value_or(space_.microbatch.front()));
    plan.schedule = choice("schedule", space_.schedule.front());
    set_virtual_stages(plan);
    plan.order = rank_order();
  }

  const SpaceSpec& space_;
  std::int64_t gpus_;
  Phase phase_;
  std::vector<std::pair<std::string_view, std::string_view>> entries_;
  Problems problems_;
};

}  // namespace

tl::expected<PointText, Problems> parse_point(std::string_view text, const SpaceSpec& space,
                                              std::int64_t gpus, Phase phase) {
  return PointParser(space, gpus, phase).parse(text);
}

std::string to_point_text(const ParallelPlan& plan, Phase phase, char separator) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!text.empty()) text += separator;
    text.append(key).append("=").append(value);
  };
  add("tp", std::to_string(plan.tensor));
  if (plan.sequence_parallel) add("sp", "1");
  if (plan.context > 1) add("cp", std::to_string(plan.context));
  add("pp", std::to_string(plan.pipeline));
  add("dp", std::to_string(plan.data));
  if (plan.disaggregated()) {
    add("prefill_tp", std::to_string(plan.prefill.tensor));
    add("prefill_pp", std::to_string(plan.prefill.pipeline));
    add("prefill_dp", std::to_string(plan.prefill.data));
  }
  if (phase == Phase::training) {
    if (plan.zero_stage > 0) add("zero", std::to_string(plan.zero_stage));
    add("recompute", std::string(name_of(plan.recompute)));
    add("mbs", std::to_string(plan.microbatch));
    if (plan.pipeline > 1) add("schedule", std::string(name_of(plan.schedule)));
    if (plan.virtual_stages > 1) add("vpp", std::to_string(plan.virtual_stages));
  }
  if (!same_layout(plan, plan.order, kDefaultRankOrder)) add("order", to_string(plan.order));
  return text;
}

std::string changes_text(const ParallelPlan& plan, const ParallelPlan& from, Phase phase) {
  const auto words = [&](const ParallelPlan& p) {
    std::vector<std::string> list;
    std::istringstream text(to_point_text(p, phase));
    for (std::string word; std::getline(text, word, ',');) list.push_back(word);
    return list;
  };
  const std::vector<std::string> old = words(from);
  std::string text;
  for (const std::string& word : words(plan)) {
    if (std::ranges::find(old, word) == old.end()) text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

}  // namespace shardscape::sweep
