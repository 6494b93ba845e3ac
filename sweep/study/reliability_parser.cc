#include "sweep/study/study_parts.h"

#include "engine/spec/ranges.h"

namespace shardscape::sweep {

std::optional<Reliability> parse_reliability(const yaml::Node& node, bool faults, std::optional<Phase> phase,
                                             yaml::Diagnostics& diagnostics) {
  if (phase == Phase::inference) {
    diagnostics.add(node.where, "reliability", "has no effect in inference");
    return std::nullopt;
  }
  const std::size_t before = diagnostics.size();
  yaml::ReadState state(node.where, "", diagnostics);
  yaml::Reader reader(node, "reliability", state);
  Reliability result;
  reader.required_within("device_mtbf", ranges::kInterval, result.device_failure_interval);
  reader.required_within("checkpoint_write", ranges::kPositiveTime, result.checkpoint_write);
  reader.required_within("restart", ranges::kTime, result.restart);
  const yaml::Node* const interval = reader.take("checkpoint_interval");
  if (interval != nullptr && !(interval->is_scalar() && interval->text == "optimal"))
    reader.read_within("checkpoint_interval", *interval, ranges::kInterval,
                       result.checkpoint_interval.emplace());
  const yaml::Node* const share = reader.take("fault_share");
  if (share != nullptr && reader.read("fault_share", *share, result.fault_share)) {
    if (!(result.fault_share >= 0 && result.fault_share <= 1)) {
      reader.bad("fault_share", *share, "must be between 0 and 1");
    } else if (!faults) {
      reader.bad("fault_share", *share, "has no effect: the study has no faults");
    }
  }
  reader.finish();
  return diagnostics.size() == before ? std::optional(result) : std::nullopt;
}

yaml::Node write_reliability(const Reliability& reliability, bool faults) {
  yaml::Node node = yaml::Node::map();
  node.set("device_mtbf", yaml::make_scalar(reliability.device_failure_interval));
  node.set("checkpoint_write", yaml::make_scalar(reliability.checkpoint_write));
  node.set("restart", yaml::make_scalar(reliability.restart));
  node.set("checkpoint_interval", reliability.checkpoint_interval
                                      ? yaml::make_scalar(*reliability.checkpoint_interval)
                                      : yaml::Node::scalar("optimal"));
  if (faults) node.set("fault_share", yaml::make_scalar(reliability.fault_share));
  return node;
}

}  // namespace shardscape::sweep
