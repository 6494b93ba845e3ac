// Reads the `patterns` of a case: each operation with its keys, names of algorithms in any spelling, and lists of
// ranks.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/spec/ranges.h"
#include "sweep/network_case/readers.h"

namespace shardscape::network_case {

namespace {

using network::Algorithm;
using network::Operation;
using network::Pattern;

/// The values of an enum by their plain names, in the order of the enum.
template <class E>
std::vector<std::pair<std::string, E>> named_values() {
  std::vector<std::pair<std::string, E>> table;
  for (const E value : enum_values<E>()) table.emplace_back(plain_name(name_of(value)), value);
  return table;
}

std::vector<std::pair<std::string, Algorithm>> named_algorithms() {
  auto table = named_values<Algorithm>();
  table.emplace_back("hd", Algorithm::halving_doubling);
  table.emplace_back("hierarchical", Algorithm::dimension_wise);
  return table;
}

class PatternReader {
 public:
  explicit PatternReader(const JsonReader& reader) : reader_(reader) {}

  std::optional<Pattern> read() {
    const auto op = reader_.member("op");
    const auto operation = op ? read_name(*op, named_values<Operation>(), "op") : std::nullopt;
    if (!operation) return std::nullopt;
    pattern_.operation = *operation;
    (void)reader_.object(keys());
    read_common();
    if (*operation == Operation::point_to_point) {
      read_sends();
    } else if (*operation == Operation::pipeline) {
      read_pipeline();
    } else {
      read_collective();
    }
    return std::move(pattern_);
  }

 private:
  [[nodiscard]] std::vector<std::string_view> keys() const {
    std::vector<std::string_view> keys = {"op", "start", "after"};
    const auto add = [&](std::initializer_list<std::string_view> more) {
      keys.insert(keys.end(), more.begin(), more.end());
    };
    if (pattern_.operation == Operation::point_to_point) {
      add({"list"});
    } else if (pattern_.operation == Operation::pipeline) {
      add({"chains", "bytes", "microbatches", "interval", "compute"});
    } else {
      add({"algo", "groups", "bytes", "order", "chunks", "partners"});
    }
    return keys;
  }

  void read_common() {
    if (const auto start = reader_.optional_member("start")) {
      pattern_.start = start->within(ranges::kTime).value_or(0);
    }
    if (const auto after = reader_.optional_member("after")) {
      if (auto list = after->integers()) pattern_.after = std::move(*list);
    }
    if (pattern_.operation == Operation::point_to_point) return;
    if (const auto bytes = reader_.member("bytes"))
      pattern_.bytes = bytes->within(ranges::kMessage).value_or(1);
  }

  void read_groups(std::string_view key) {
    const auto groups = reader_.member(key);
    const auto list = groups ? groups->elements() : std::nullopt;
    if (!list) return;
    if (list->empty()) groups->fail("needs at least one list of ranks");
    for (const JsonReader& group : *list) {
      pattern_.groups.push_back(group.integers().value_or(std::vector<std::int32_t>()));
    }
  }

  void read_sends() {
    const auto sends = reader_.member("list");
    const auto list = sends ? sends->elements() : std::nullopt;
    if (!list) return;
    if (list->empty()) sends->fail("needs at least one send");
    for (const JsonReader& entry : *list) pattern_.sends.push_back(read_send(entry));
  }

  [[nodiscard]] network::PointToPoint read_send(const JsonReader& entry) const {
    // A malformed send gets ranks that can't run, so that it is not mistaken for another one.
    network::PointToPoint send{-1, -2, 0, 0};
    const auto fields = entry.elements();
    if (!fields) return send;
    if (fields->size() != 3 && fields->size() != 4) {
      entry.fail("must be [source, destination, bytes] or [source, destination, bytes, start]");
      return send;
    }
    send.source = (*fields)[0].integer().value_or(send.source);
    send.destination = (*fields)[1].integer().value_or(send.destination);
    send.bytes = (*fields)[2].within(ranges::kMessage).value_or(0);
    send.start = fields->size() == 4 ? (*fields)[3].within(ranges::kTime).value_or(0) : pattern_.start;
    return send;
  }

  void read_pipeline() {
    read_groups("chains");
    if (const auto count = read_count("microbatches")) pattern_.microbatches = *count;
    if (const auto interval = reader_.optional_member("interval")) {
      pattern_.interval = interval->within(ranges::kTime).value_or(0);
    }
    if (const auto compute = reader_.optional_member("compute")) {
      pattern_.compute = compute->within(ranges::kTime).value_or(0);
    }
  }

  std::optional<std::int32_t> read_count(std::string_view key) const {
    const auto reader = reader_.optional_member(key);
    const auto count = reader ? reader->integer() : std::nullopt;
    if (count && *count < 1) reader->fail(fmt::format("must be at least 1, not {}", *count));
    return count;
  }

  void read_collective() {
    read_groups("groups");
    const auto algo = reader_.optional_member("algo");
    const auto algorithm = algo ? read_name(*algo, named_algorithms(), "algo") : Algorithm::ring;
    if (!algorithm) return;
    pattern_.algorithm = *algorithm;
    if (pattern_.operation == Operation::all_to_all && *algorithm != Algorithm::pairwise) {
      pattern_.algorithm = Algorithm::direct;
    }
    if (algo && !network::supports(pattern_.operation, pattern_.algorithm)) {
      algo->fail(fmt::format("{} is no algorithm for {}", name_of(*algorithm), name_of(pattern_.operation)));
      return;
    }
    read_order();
    read_chunks();
    read_partners();
  }

  void read_order() {
    static constexpr std::array<std::pair<std::string_view, network::RingOrder>, 2> kRing = {
        {{"listed", network::RingOrder::listed}, {"hamiltonian", network::RingOrder::hamiltonian}}};
    const auto order = reader_.optional_member("order");
    if (!order) return;
    if (pattern_.algorithm == Algorithm::halving_doubling) {
      if (const auto value = read_name(*order, named_values<network::HalvingOrder>(), "order"))
        pattern_.halving_order = *value;
    } else if (network::rings_of(pattern_) > 0) {
      if (const auto value = read_name(*order, kRing, "order")) pattern_.ring_order = *value;
    } else {
      has_no_effect(*order);
    }
  }

  void read_chunks() {
    const auto reader = reader_.optional_member("chunks");
    if (const auto count = read_count("chunks")) pattern_.chunks = *count;
    if (reader && !network::takes_chunks(pattern_.operation, pattern_.algorithm)) has_no_effect(*reader);
  }

  void read_partners() {
    const auto partners = reader_.optional_member("partners");
    if (!partners) return;
    if (const auto value = read_name(*partners, named_values<network::PairwisePartners>(), "partner"))
      pattern_.partners = *value;
    if (pattern_.algorithm != Algorithm::pairwise) has_no_effect(*partners);
  }

  void has_no_effect(const JsonReader& setting) const {
    setting.fail(
        fmt::format("has no effect on {} {}", name_of(pattern_.algorithm), name_of(pattern_.operation)));
  }

  const JsonReader& reader_;
  Pattern pattern_;
};

}  // namespace

std::optional<Pattern> read_pattern(const JsonReader& pattern) { return PatternReader(pattern).read(); }

}  // namespace shardscape::network_case
