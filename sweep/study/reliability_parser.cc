#include "sweep/study/reliability_parser.h"

#include "engine/spec/ranges.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

class ReliabilityParser {
 public:
  ReliabilityParser(const yaml::Node& node, yaml::Diagnostics& diagnostics)
      : diagnostics_(diagnostics),
        state_(node.where, "", diagnostics),
        reader_(node, "reliability", state_) {}

  std::optional<Reliability> run(bool faults) {
    const std::size_t before = diagnostics_.size();
    required("device_mtbf", ranges::kInterval, result_.device_failure_interval);
    required("checkpoint_write", ranges::kPositiveTime, result_.checkpoint_write);
    required("restart", ranges::kTime, result_.restart);
    read_interval();
    read_share(faults);
    reader_.finish();
    if (diagnostics_.size() != before) return std::nullopt;
    return result_;
  }

 private:
  void bad(const char* key, const yaml::Node& node, const std::string& message) {
    state_.bad(std::string("reliability.") + key, node.where, message);
  }

  void required(const char* key, const Range& range, Seconds& value) {
    if (const yaml::Node* node = reader_.take_required(key)) read(key, *node, range, value);
  }
  void read(const char* key, const yaml::Node& node, const Range& range, Seconds& value) {
    const auto parsed = yaml::parse_value<Seconds>(node);
    if (!parsed) return bad(key, node, parsed.error());
    if (!range.holds(*parsed)) return bad(key, node, range.violated_by(parsed->value()));
    value = *parsed;
  }

  void read_interval() {
    const yaml::Node* node = reader_.take("checkpoint_interval");
    if (node == nullptr || (node->is_scalar() && node->text == "optimal")) return;
    read("checkpoint_interval", *node, ranges::kInterval, result_.checkpoint_interval.emplace());
  }

  void read_share(bool faults) {
    const yaml::Node* node = reader_.take("fault_share");
    if (node == nullptr) return;
    const auto share = yaml::parse_number_node(*node);
    if (!share) return bad("fault_share", *node, share.error());
    if (!(*share >= 0 && *share <= 1)) return bad("fault_share", *node, "must be between 0 and 1");
    if (!faults) return bad("fault_share", *node, "has no effect: the study has no faults");
    result_.fault_share = *share;
  }

  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  Reliability result_;
};

}  // namespace

std::optional<Reliability> parse_reliability(const yaml::Node& node, bool faults, std::optional<Phase> phase,
                                             yaml::Diagnostics& diagnostics) {
  if (phase == Phase::inference) {
    diagnostics.add(node.where, "reliability", "has no effect in inference");
    return std::nullopt;
  }
  return ReliabilityParser(node, diagnostics).run(faults);
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
