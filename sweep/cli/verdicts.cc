#include "sweep/cli/verdicts.h"

#include <fmt/format.h>

#include "sweep/cli/format.h"
#include "sweep/cli/text_table.h"

namespace shardscape::cli {

std::string describe(Reason reason) {
  switch (reason) {
    case Reason::none:
      return "nothing is wrong";
    case Reason::heads_by_tensor:
      return "the number of heads does not divide by tp";
    case Reason::kv_heads_by_tensor:
      return "neither do the KV heads divide by tp nor tp by the KV heads";
    case Reason::ffn_by_tensor:
      return "the width of the MLP does not divide by tp";
    case Reason::sequence_by_context:
      return "the sequence does not divide by 2 * cp, or by cp * tp with sequence parallelism";
    case Reason::layers_by_pipeline:
      return "the layers do not divide by pp * vpp, as the stack's partition asks";
    case Reason::fewer_layers_than_stages:
      return "there are fewer layers than pipeline stages";
    case Reason::batch_by_data:
      return "the global batch does not divide by dp * mbs";
    case Reason::microbatches_by_stages:
      return "the interleaved schedule needs a number of microbatches that divides by pp";
    case Reason::requests_by_data:
      return "the concurrency does not divide by dp";
    case Reason::constraint:
      return "a constraint of the study rejects it";
    case Reason::memory_capacity:
      return "the fullest device needs more memory than it has";
    case Reason::no_route:
      return "some ranks cannot reach each other";
    case Reason::precision:
      return "the device has no unit for the compute type";
    case Reason::schedule:
      return "this schedule is not modelled for such a plan";
    case Reason::out_of_range:
      return "a time, a rate or the memory is infinite, no number, or beyond all machines; or more passes or "
             "iterations would have to be walked through than are (global_batch, prompt_tokens, concurrency)";
    case Reason::no_experts:
      return "the model has no experts for ep or etp";
    case Reason::experts_by_ranks:
      return "the experts do not divide by ep";
    case Reason::slots_by_ranks:
      return "the experts with the copies of serving.redundant_experts (or prefill_redundant_experts) do not "
             "divide "
             "by ep, or are more than one of each for every rank";
    case Reason::expert_width_by_ranks:
      return "the width of an expert does not divide by etp";
    case Reason::ranks_by_experts:
      return "tp * cp * dp does not divide into groups of ep * etp ranks; in inference ep * etp is tp, "
             "innermost";
    case Reason::repeated_tokens:
      return "tokens go to experts of other ranks, and those of a tensor group hold the same: set sp";
    case Reason::microbatches_by_directions:
      return "dualpipe needs an even number of microbatches, at least 2 * pp";
    case Reason::layout:
      return "the stack's pipeline_layout is for other layers, or for another number of stages than pp * vpp";
  }
  return "?";
}

Status status_of(Reason reason) {
  switch (reason) {
    case Reason::none:
      return Status::ok;
    case Reason::constraint:
      return Status::constraint;
    case Reason::memory_capacity:
      return Status::memory;
    case Reason::no_route:
      return Status::unreachable;
    case Reason::precision:
    case Reason::schedule:
    case Reason::repeated_tokens:
      return Status::unsupported;
    case Reason::out_of_range:
      return Status::out_of_range;
    default:
      return Status::indivisible;
  }
}

VerdictCounts verdict_counts(const sweep::Tally& tally, std::uint64_t points) {
  VerdictCounts counts;
  counts.points = points;
  for (std::size_t code = 0; code < tally.by_status.size(); ++code) {
    if (tally.by_status[code] > 0)
      counts.statuses.push_back({static_cast<std::uint8_t>(code), tally.by_status[code], 0});
  }
  for (std::size_t code = 1; code < tally.by_reason.size(); ++code) {
    if (tally.by_reason[code] > 0)
      counts.reasons.push_back({static_cast<std::uint8_t>(code), tally.by_reason[code], 0});
  }
  return counts;
}

void print_verdicts(std::ostream& out, const VerdictCounts& counts) {
  TextTable table({left(""), "", ""});
  if (counts.examples) table.add_column("", TextTable::Align::left);
  table.add_column("", TextTable::Align::left);
  const auto add = [&](const std::string& name, const results::CodeCount& entry, const std::string& meaning) {
    const double share = static_cast<double>(entry.count) / static_cast<double>(counts.points);
    std::vector<std::string> cells = {name, format_count(entry.count), format_percent(share)};
    if (counts.examples) cells.push_back(fmt::format("from point {}", entry.example));
    cells.push_back(meaning);
    table.add_row(std::move(cells));
  };
  for (const results::CodeCount& status : counts.statuses) {
    add(std::string(name_of(static_cast<Status>(status.code))), status, "");
    for (const results::CodeCount& entry : counts.reasons) {
      const auto reason = static_cast<Reason>(entry.code);
      if (status_of(reason) == static_cast<Status>(status.code)) {
        add(fmt::format("  {}", name_of(reason)), entry, describe(reason));
      }
    }
  }
  table.print(out, 2);
}

}  // namespace shardscape::cli
