// Parses a plan written as "key=value,..." against the axes of a space, fills in the axes left out, checks the product
// of the degrees, and writes plans as text.
#include "sweep/space/point_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/space/axis_names.h"
#include "sweep/space/design_space.h"

namespace shardscape::sweep {

namespace {

constexpr std::string_view kConcurrency = "concurrency", kRate = "request_rate";

/// Reads "key=value,..." and turns values into axes; collects every problem on the way.
class PointParser {
 public:
  PointParser(const SpaceSpec& space, std::int64_t gpus, Phase phase)
      : space_(space), gpus_(gpus), phase_(phase), known_(point_keys(phase)) {}

  tl::expected<PointText, Problems> parse(std::string_view text) {
    add_entries(text);
    PointText point;
    set_prefill(point.plan);
    set_degrees(point.plan);
    set_axes(point.plan);
    point.concurrency = whole(kConcurrency, 1, static_cast<std::int64_t>(ranges::kRequests.high));
    point.request_rate = rate(kRate);
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    point.plan = canonical(point.plan, phase_);
    return point;
  }

 private:
  void add_entries(std::string_view text) {
    if (trimmed(text).empty()) return;  // every axis takes its first value
    for (const std::string_view entry : split(text, ',')) add_entry(trimmed(entry));
  }

  void add_entry(std::string_view entry) {
    const std::size_t sign = entry.find('=');
    if (sign == std::string_view::npos) {
      return problems_.add(std::string(entry), "write it as key=value, such as tp=8");
    }
    std::string_view key = trimmed(entry.substr(0, sign));
    if (const PlanAxisRow* const axis = find_axis(key)) key = axis->name;
    if (std::ranges::find(known_, key) == known_.end()) {
      return problems_.add(std::string(key), unknown_key(key));
    }
    if (find(key)) return problems_.add(std::string(key), "is given twice");
    entries_.emplace_back(key, trimmed(entry.substr(sign + 1)));
  }

  [[nodiscard]] std::string unknown_key(std::string_view key) const {
    const auto other = point_keys(phase_ == Phase::training ? Phase::inference : Phase::training);
    if (std::ranges::find(other, key) != other.end()) {
      return fmt::format("has no meaning for {}; known keys: {}", name_of(phase_), join_names(known_));
    }
    return "unknown key" + did_you_mean(key, known_) + "; known keys: " + join_names(known_);
  }

  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const {
    const auto found =
        std::ranges::find(entries_, key, &std::pair<std::string_view, std::string_view>::first);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }

  /// The value of a key as an integer from `low` to `high`; nothing where it is absent, or wrong (which is then
  /// reported).
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t low, std::int64_t high) {
    const std::optional<std::string_view> text = find(key);
    if (!text) return std::nullopt;
    const auto value = to_number<std::int64_t>(*text);
    if (value && *value >= low && *value <= high) return value;
    problems_.add(std::string(key),
                  high < low
                      ? fmt::format("has no value on {} {}", gpus_, gpus_ == 1 ? "GPU" : "GPUs")
                      : fmt::format("{} is not a whole number from {} to {}", quote(*text), low, high));
    return std::nullopt;
  }

  /// The value of a key as requests per second.
  std::optional<double> rate(std::string_view key) {
    const std::optional<std::string_view> text = find(key);
    if (!text) return std::nullopt;
    const auto value = parse_request_rate(*text);
    if (value) return *value;
    problems_.add(std::string(key),
                  fmt::format("{} is not a number of requests per second from {} to {}, such as 4, "
                              "4 /s or 240 /min",
                              quote(*text), kRequestRate.low, kRequestRate.high));
    return std::nullopt;
  }

  /// Sets the pool that prefills, and the GPUs that only have experts: the first ones of the space unless the text says
  /// otherwise.
  void set_prefill(ParallelPlan& plan) {
    if (phase_ == Phase::training) return;
    PrefillPool& pool = plan.prefill;
    constexpr PlanKey kFfn = PlanKey::ffn;
    const std::int64_t most = gpus_ - 1;
    const std::string tensor(name_of(PlanKey::prefill_tensor)), pipeline(name_of(PlanKey::prefill_pipeline)),
        data(name_of(PlanKey::prefill_data));
    const auto degree = [&](PlanKey key) {
      return static_cast<std::int32_t>(whole(name_of(key), 1, most).value_or(space_[key].values.front()));
    };
    pool.tensor = degree(PlanKey::prefill_tensor);
    pool.pipeline = degree(PlanKey::prefill_pipeline);
    const double replica = static_cast<double>(pool.tensor) * pool.pipeline;
    const double replicas = space_.prefill_gpus.front() / replica;
    if (find(data)) {
      pool.data = static_cast<std::int32_t>(whole(data, 0, most).value_or(0));
    } else if (replicas == std::floor(replicas)) {
      pool.data = static_cast<std::int32_t>(replicas);
    } else {
      problems_.add(data,
                    fmt::format("the study's {} GPUs to prefill make no whole replicas of {}*{} = {}*{}",
                                space_.prefill_gpus.front(), tensor, pipeline, pool.tensor, pool.pipeline));
    }
    if (replica * pool.data >= static_cast<double>(gpus_)) {
      problems_.add(tensor + ',' + pipeline + ',' + data,
                    fmt::format("their product must be less than the number of GPUs, {}", gpus_));
      pool = {};
    }
    const bool given = find(tensor) || find(pipeline);
    if (pool.data == 0 && given && problems_.empty())
      problems_.add(tensor + ',' + pipeline, "have no effect without " + data);
    const std::int64_t left = gpus_ - pool.gpus() - 1;
    const std::int64_t ffn = whole(name_of(kFfn), 0, left).value_or(space_[kFfn].values.front());
    if (pool.data > 0 && ffn > left && problems_.empty())
      problems_.add(std::string(name_of(kFfn)),
                    fmt::format("the study's {} leave no GPU for attention; {} at most do", ffn, left));
    if (pool.data > 0) plan.ffn = static_cast<std::int32_t>(std::min(ffn, left));
    if (pool.data == 0 && find(name_of(kFfn)) && problems_.empty())
      problems_.add(std::string(name_of(kFfn)), "has no effect without " + data);
  }

  void set_degrees(ParallelPlan& plan) {
    const PlanAxisRow* open = nullptr;
    bool readable = true;
    for (const PlanAxisRow& row : kPlanRows) {
      if (row.kind != AxisKind::degree) continue;
      const AxisList& axis = space_[row.key];
      if (find(row.name)) {
        const std::optional<std::int64_t> value = whole(row.name, 1, gpus_);
        readable = readable && value.has_value();
        row.set(plan, static_cast<std::int32_t>(value.value_or(1)));
      } else if (axis.fill) {
        open = &row;
      } else {
        row.set(plan, axis.values.front());
      }
    }
    if (readable) fill(plan, open);
  }

  /// Gives the open degree, if there is one, the GPUs that the other degrees leave.
  void fill(ParallelPlan& plan, const PlanAxisRow* open) {
    double product = 1;
    for (const PlanAxis axis : enum_values<PlanAxis>()) product *= plan.degree(axis);
    const std::int64_t gpus = gpus_ - plan.prefill.gpus() - plan.ffn;
    const double share = static_cast<double>(gpus) / product;
    if (open != nullptr && share >= 1 && share == std::floor(share))
      open->set(plan, static_cast<std::int32_t>(share));
    if (open != nullptr ? open->get(plan) == share : share == 1) return;
    std::string degrees;
    for (const PlanAxisRow& row : kPlanRows) {
      if (row.kind != AxisKind::degree) continue;
      if (!degrees.empty()) degrees += '*';
      degrees += &row == open ? std::string(row.name) : code_text(row, row.get(plan));
    }
    problems_.add(degree_names(","),
                  fmt::format("{} = {} must be the number of GPUs, {}{}", degree_names("*"), degrees, gpus,
                              plan.ffn > 0           ? " beside those that prefill or have experts"
                              : plan.disaggregated() ? " beside those that prefill"
                                                     : ""));
  }

  /// The code of an axis in the text, or else the first one of the space.
  std::int32_t code(const PlanAxisRow& row) {
    const std::int32_t first = space_[row.key].values.front();
    const std::optional<std::string_view> text = find(row.name);
    if (!text) return first;
    const auto bad = [&](const std::string& problem) {
      problems_.add(std::string(row.name), quote(*text) + problem);
      return row.idle;
    };
    switch (row.kind) {
      case AxisKind::degree:
      case AxisKind::pool:
        break;
      case AxisKind::integer:
        return static_cast<std::int32_t>(whole(row.name, row.low, row.high).value_or(row.idle));
      case AxisKind::flag:
        if (*text == "1" || *text == "true") return 1;
        return *text == "0" || *text == "false" ? 0 : bad(" is not one of 0, 1, false, true");
      case AxisKind::choice:
        if (const auto known = parse_code(row, *text)) return *known;
        return bad(" is not one of " + join_names(row.names) + did_you_mean(*text, row.names));
      case AxisKind::order:
        if (const auto known = parse_code(row, *text)) return *known;
        return bad(" does not name each of " + order_names(", ") + " once, as " +
                   to_string(kDefaultRankOrder) + " does");
    }
    return first;
  }

  void set_axes(ParallelPlan& plan) {
    for (const PlanAxisRow& row : kPlanRows) {
      if (!applies(row.phases, phase_) || row.kind == AxisKind::degree || row.kind == AxisKind::pool)
        continue;
      row.set(plan, code(row));
      if (row.key == PlanKey::virtual_stages && find(row.name) && plan.virtual_stages > 1 &&
          !plan.chunked()) {
        const std::string schedule = fmt::format("{}=", name_of(PlanKey::schedule));
        problems_.add(std::string(row.name),
                      fmt::format("more than one virtual stage needs {}{}, not {}{}", schedule,
                                  name_of(kChunkedSchedule), schedule, name_of(plan.schedule)));
      }
    }
  }

  const SpaceSpec& space_;
  std::int64_t gpus_;
  Phase phase_;
  std::vector<std::string_view> known_;
  std::vector<std::pair<std::string_view, std::string_view>> entries_;
  Problems problems_;
};

/// Whether the text of a plan mentions an axis.
bool is_said(const PlanAxisRow& row, const ParallelPlan& plan, Phase phase) {
  if (row.key == PlanKey::ffn) return plan.ffn > 0;
  if (row.kind == AxisKind::pool) return plan.disaggregated();
  if (row.kind == AxisKind::order) return !same_layout(plan, plan.order, kDefaultRankOrder);
  if (!applies(row.phases, phase)) return false;
  if (row.kind == AxisKind::choice) return row.fixed == nullptr || !row.fixed(plan);
  // Context parallelism is rare and mentioned only above 1.
  const bool always = row.fixed == nullptr && row.key != PlanKey::context;
  return always || row.get(plan) != row.idle;
}

}  // namespace

tl::expected<double, std::string> parse_request_rate(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view unit = slash == std::string_view::npos ? "s" : text.substr(slash + 1);
  text = trimmed(text.substr(0, slash));
  const auto number = to_number<double>(text);
  if (!number || (unit != "s" && unit != "min"))
    return tl::unexpected(std::string("is no rate of requests, such as 3 /s or 180 /min"));
  const double value = unit == "min" ? *number / 60 : *number;
  if (value >= kRequestRate.low && value <= kRequestRate.high) return value;
  return tl::unexpected(fmt::format("must be from {} to {} /s", kRequestRate.low, kRequestRate.high));
}

std::vector<std::string_view> point_keys(Phase phase) {
  std::vector<std::string_view> keys;
  keys.reserve(kPlanRows.size() + 2);
  for (const PlanAxisRow& row : kPlanRows) {
    if (applies(row.phases, phase)) keys.push_back(row.name);
  }
  if (phase == Phase::inference) keys.insert(keys.end(), {kConcurrency, kRate});
  return keys;
}

tl::expected<PointText, Problems> parse_point(std::string_view text, const SpaceSpec& space,
                                              std::int64_t gpus, Phase phase) {
  return PointParser(space, gpus, phase).parse(text);
}

std::string to_point_text(const ParallelPlan& plan, Phase phase, char separator) {
  std::string text;
  for (const PlanAxisRow& row : kPlanRows) {
    if (!is_said(row, plan, phase)) continue;
    if (!text.empty()) text += separator;
    text.append(row.name).append("=").append(code_text(row, row.get(plan)));
  }
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
