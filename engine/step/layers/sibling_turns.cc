#include "engine/step/layers/sibling_turns.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>
#include <cmath>

#include "engine/network/groups/rank_group.h"
#include "engine/spec/parallel_groups.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

namespace {

constexpr double kWorthTurns = 1e-3;  ///< of the step
constexpr int kRounds = 5;  ///< each brings the share nearer by more than half: 1e-3 is left of most

/// What of traffic that other stages begin when their passes end is there at the same time: who begins dt later meets
/// the other's traffic until that, which has gone on alone for dt, has ended, so for dt less than if both began at
/// once.
double share_at_end(const AmongSiblings& once, const TimedStage& stage) {
  const double alone = (once.time - once.others).value();
  if (once.others <= Seconds(0) || alone <= 0) return 1;
  double sum = 0;
  for (std::size_t s = 0; s < stage.ends.size(); ++s) {
    if (s == stage.stage) continue;
    sum += std::max(0.0, 1 - std::abs(stage.ends[s] - stage.ends[stage.stage]) / alone);
  }
  return sum / static_cast<double>(stage.ends.size() - 1);
}

}  // namespace

SentByOthers sent_by_others(const TrainingStep& in, std::size_t stage, ParallelGroup group) {
  const auto sends = [&](std::size_t s) {
    if (!is_of_data(group)) return static_cast<double>(in.layers[s].count() + in.layers[s].further());
    return in.parameters_of(static_cast<std::int32_t>(s))[group].count;
  };
  const double own = sends(stage);
  if (own <= 0) return {};
  double sum = 0, least = own;
  for (std::size_t s = 0; s < in.layers.size(); ++s) {
    if (s == stage) continue;
    const double other = sends(s);
    sum += std::min(own, other);
    least = std::min(least, other);
  }
  return {sum / own / static_cast<double>(in.layers.size() - 1), least / own};
}

bool worth_turns(const SiblingTimes& passes, const SiblingTimes& once, const TimedStage& stage) {
  Seconds most;
  for (const ParallelGroup group : enum_values<ParallelGroup>())
    most += passes[group].others + once[group].others;
  return most > kWorthTurns * stage.step;
}

SiblingTurns sibling_turns(const SiblingTimes& passes, const SiblingTimes& once, const TimedStage& stage,
                           const EnumArray<ParallelGroup, double>& by_others, const MetTraffic& beside) {
  if (!worth_turns(passes, once, stage)) return {};
  boost::container::static_vector<ParallelGroup, EnumNames<ParallelGroup>::names.size()> groups;
  for (const ParallelGroup group : enum_values<ParallelGroup>())
    if (passes[group].others + once[group].others > Seconds(0)) groups.push_back(group);
  SiblingTurns turns;
  turns.any = true;
  EnumArray<ParallelGroup, Seconds> all, spared;
  Seconds all_once;
  // Groups of one class spare no more together than shows of that class.
  const auto shown = [&](const EnumArray<ParallelGroup, Seconds>& times) {
    Breakdown sums;
    for (const ParallelGroup group : groups) sums[class_of(group)] += times[group];
    Seconds sum;
    for (const TimeClass c : enum_values<TimeClass>()) sum += std::min(sums[c], stage.shown[c]);
    return (1 + stage.bubble) * sum;
  };
  for (const ParallelGroup group : groups) {
    const Seconds at_end = once[group].spared(group, by_others[group] * share_at_end(once[group], stage));
    turns.once += at_end;
    turns.at_end[group] = once[group].others > Seconds(0) ? at_end / once[group].others : 0;
    all[group] = passes[group].others;
    all_once += once[group].others;
  }
  const Seconds after_passes = stage.step - std::min(turns.once, stage.data_tail);
  Seconds now = after_passes;
  for (int round = 0; round < kRounds; ++round) {
    for (const ParallelGroup group : groups) {
      if (passes[group].others <= Seconds(0)) continue;
      const double at_calls = by_others[group] * ((passes[group].time - spared[group]) / now);
      spared[group] = is_of_data(group) ? passes[group].spared(group, beside.share, beside.in_phase)
                                        : passes[group].spared(group, std::min(1.0, at_calls));
      turns.beside[group] = spared[group] / passes[group].others;
    }
    now = after_passes - shown(spared);
  }
  for (const ParallelGroup group : groups)
    if (is_of_data(group)) turns.beside_passes += (1 + stage.bubble) * spared[group];
  const Seconds most_spared = shown(all) + std::min(all_once, stage.data_tail);
  turns.left = std::max(Seconds(0), most_spared - (stage.step - now));
  return turns;
}

}  // namespace shardscape::step
