// Reads a simulated load in three steps (trace, arrivals, client): each keeps the values that it can read, reports the
// others at their keys, and adds what it has read to the resolved YAML. So do lengths, rates and sessions.
#include "sweep/study/load_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/serving/load/drawn_requests.h"
#include "engine/spec/ranges.h"
#include "results_schema/disk/sha256.h"
#include "sweep/input/input_file.h"
#include "sweep/space/point_text.h"
#include "sweep/study/study_parts.h"
#include "sweep/study/trace_file.h"
#include "sweep/yaml/value.h"

namespace shardscape::sweep {

namespace {

constexpr Range kSpeedUp{1e-6, 1e6};

bool has_map(const yaml::Node* node) {
  if (node == nullptr) return false;
  return node->is_map() || std::ranges::any_of(node->items, [](const yaml::Node& n) { return n.is_map(); });
}

std::string count_text(const RequestCount& count) {
  return fmt::format("{}{}", count.number, count.per_client ? "x" : "");
}

/// Seconds that open loops last where nothing is said.
constexpr double kOpenLoop = 120;

/// Reads a number of requests: a plain number, or "10x" for ten of each in flight.
yaml::Parsed<RequestCount> parse_count(const yaml::Node& node, std::int64_t low) {
  const auto text =
      yaml::bare_text(node, "a number of requests such as 2000, or 10x for ten of each in flight");
  if (!text) return tl::unexpected(text.error());
  const bool per_client = text->ends_with('x');
  const auto number = yaml::parse_integer(text->substr(0, text->size() - (per_client ? 1 : 0)), low,
                                          static_cast<std::int64_t>(ranges::kRequests.high));
  if (!number) return tl::unexpected(number.error() + "; write 2000, or 10x for ten of each in flight");
  return RequestCount{*number, per_client};
}

class SimulatedLoadReader {
 public:
  SimulatedLoadReader(const yaml::Node& workload, const std::filesystem::path& folder, yaml::Reader& reader,
                      yaml::ReadState& state)
      : workload_(workload), folder_(folder), reader_(reader), state_(state) {
    result_.resolved = yaml::Node::map();
  }

  ParsedLoad run() {
    read_trace();
    read_arrivals();
    read_client();
    return std::move(result_);
  }

 private:
  static std::string path(const std::string& key) { return "workload." + key; }
  void bad(const std::string& key, const yaml::Node& node, const std::string& message) {
    state_.bad(path(key), node.where, message);
  }

  void read_trace() {
    const yaml::Node* node = reader_.take("trace");
    const yaml::Node* speed = reader_.take("speed_up");
    if (node == nullptr) {
      if (speed != nullptr) bad("speed_up", *speed, "has no effect without trace");
      return;
    }
    for (const char* other : {"request_rate", "concurrency", "sessions"})
      if (const yaml::Node* there = workload_.find(other))
        bad(other, *there, "excludes trace, which says when requests come");
    if (speed != nullptr && reader_.read_within("speed_up", *speed, kSpeedUp, result_.load.speed_up))
      result_.resolved.set("speed_up", *speed);
    const yaml::Node* digest = nullptr;
    if (node->is_map()) {
      yaml::Reader of(*node, path("trace"), state_);
      digest = of.take("sha256");
      node = of.take_required("file");
      of.finish();
      if (node == nullptr) return;
    }
    const auto name = yaml::scalar_text(*node, "the name of a CSV file");
    if (!name) return bad("trace", *node, name.error());
    const std::filesystem::path file = folder_ / *name;
    const auto text = input::read_file(file, input::kMostTableBytes, "a table of requests");
    if (!text) return bad("trace", *node, file.string() + ": " + text.error());
    result_.tables.push_back(file);
    const std::string sha256 = results::sha256_hex(*text);
    if (digest != nullptr && yaml::scalar_text(*digest, "a SHA-256") != sha256)
      return bad("trace.sha256", *digest, file.string() + " has changed: it is " + sha256 + " now");
    auto trace = parse_trace(*text);
    if (!trace) {
      for (const std::string& problem : trace.error()) bad("trace", *node, file.string() + ": " + problem);
      return;
    }
    result_.load.prompt = trace->prompt;
    result_.load.output = trace->output;
    result_.load.trace = std::make_shared<const Trace>(*std::move(trace));
    yaml::Node resolved = yaml::Node::map();
    resolved.set("file", yaml::Node::scalar(std::filesystem::absolute(file).lexically_normal().string()));
    resolved.set("sha256", yaml::Node::scalar(sha256));
    result_.resolved.set("trace", std::move(resolved));
  }

  void read_arrivals() {
    const yaml::Node* node = reader_.take("arrivals");
    if (node == nullptr) return;
    if (workload_.find("request_rate") == nullptr)
      return bad("arrivals", *node, "has no effect without request_rate");
    LoadSpec& load = result_.load;
    result_.resolved.set("arrivals", *node);
    if (!node->is_map()) {
      reader_.read("arrivals", *node, load.arrivals);
    } else {
      yaml::Reader reader(*node, path("arrivals"), state_);
      reader.required("process", load.arrivals);
      if (const yaml::Node* cv = reader.take("cv")) {
        has_cv_ = reader.read("cv", *cv, load.arrivals_cv);
        if (load.arrivals != ArrivalProcess::gamma)
          reader.bad("cv", *cv, "has an effect with process: gamma alone");
      }
      reader.finish();
    }
    if (load.arrivals == ArrivalProcess::gamma && !has_cv_)
      bad("arrivals", *node, "needs the coefficient of variation: {process: gamma, cv: 2}");
  }

  void take_profile(const yaml::Node& node, const std::string& key) {
    const auto name = yaml::scalar_text(node, "the name of a client");
    const ClientProfile* const profile = name ? find_client_profile(*name) : nullptr;
    if (profile == nullptr) {
      const std::vector<std::string_view> names = client_profile_names();
      const auto choice = yaml::parse_choice(node, names);
      return bad(key, node, choice ? "is unknown" : choice.error());
    }
    result_.load.requests = profile->requests;
    result_.timed = {};  // a client's number of requests stands in an open loop, too
    result_.load.warm_up = profile->warm_up;
    result_.length_ratio = profile->length_ratio;
    warm_up_known_ = true;
  }

  void read_client() {
    LoadSpec& load = result_.load;
    const bool open = workload_.find("request_rate") != nullptr || load.trace != nullptr;
    if (load.trace) load.requests = {static_cast<std::int64_t>(load.trace->requests.size()), false};
    if (open && !load.trace) result_.timed.seconds = kOpenLoop;
    if (const yaml::Node* node = reader_.take("client")) {
      if (!node->is_map()) {
        take_profile(*node, "client");
      } else {
        read_client(*node);
      }
    }
    result_.timed.tenth_warms_up = load.statistic == ClientStatistic::steady && !warm_up_known_ && open;
    if (load.statistic == ClientStatistic::steady && !warm_up_known_ && !open) load.warm_up = {2, true};
    result_.timed.count(load);
    yaml::Node client = yaml::Node::map();
    client.flow = true;
    const double seconds = result_.timed.seconds;
    client.set("requests",
               yaml::Node::scalar(seconds > 0 ? yaml::format_quantity(seconds, yaml::Dimension::time)
                                              : count_text(load.requests)));
    if (!result_.timed.tenth_warms_up || seconds == 0)
      client.set("warm_up", yaml::Node::scalar(count_text(load.warm_up)));
    client.set("statistic", yaml::make_scalar(load.statistic));
    client.set("length_ratio", yaml::make_scalar(result_.length_ratio));
    client.set("seed", yaml::make_scalar(load.seed));
    result_.resolved.set("client", std::move(client));
  }

  void read_client(const yaml::Node& node) {
    LoadSpec& load = result_.load;
    yaml::Reader reader(node, path("client"), state_);
    if (const yaml::Node* profile = reader.take("profile")) take_profile(*profile, "client.profile");
    if (const yaml::Node* requests = reader.take("requests")) read_requests(*requests, reader);
    if (const yaml::Node* warm_up = reader.take("warm_up"))
      warm_up_known_ = reader.keep("warm_up", *warm_up, parse_count(*warm_up, 0), load.warm_up);
    reader.optional("statistic", load.statistic);
    reader.within("length_ratio", ranges::kFraction, result_.length_ratio);
    reader.integer("seed", 0, std::int64_t{1} << 53, load.seed);
    reader.finish();
  }

  /// A number, or a time at whose rate requests come.
  void read_requests(const yaml::Node& node, yaml::Reader& reader) {
    const auto seconds = yaml::parse_quantity_node(node, yaml::Dimension::time);
    if (!seconds) {
      result_.timed.seconds = 0;
      reader.keep("requests", node, parse_count(node, 1), result_.load.requests);
    } else if (workload_.find("request_rate") == nullptr) {
      reader.bad("requests", node, "a time takes request_rate, at which requests come; write 2000, or 10x");
    } else if (!(*seconds > 0 && *seconds <= ranges::kTime.high)) {
      reader.bad("requests", node, "a time above 0 is expected");
    } else {
      result_.timed.seconds = *seconds;
    }
  }

  const yaml::Node& workload_;
  const std::filesystem::path& folder_;
  yaml::Reader& reader_;
  yaml::ReadState& state_;
  ParsedLoad result_;
  bool has_cv_ = false, warm_up_known_ = false;
};

constexpr auto kMostTokens = static_cast<std::int64_t>(ranges::kTokens.high);

}  // namespace

bool describes_load(const yaml::Node& workload) {
  return std::ranges::any_of(kLoadKeys, [&](const char* key) { return workload.find(key) != nullptr; }) ||
         has_map(workload.find("prompt_tokens")) || has_map(workload.find("output_tokens"));
}

ParsedLoad parse_load(const yaml::Node& workload, const std::filesystem::path& folder, yaml::Reader& reader,
                      yaml::ReadState& state) {
  return SimulatedLoadReader(workload, folder, reader, state).run();
}

void TimedRequests::count(LoadSpec& load) const {
  if (seconds > 0) {
    const double number = std::max(static_cast<double>(kFewest), std::ceil(seconds * load.request_rate));
    load.requests = {static_cast<std::int64_t>(std::min(number, ranges::kRequests.high)), false};
  }
  if (tenth_warms_up) load.warm_up = {load.requests.number / 10, false};
}

std::optional<Lengths> parse_lengths(const yaml::Node& node, const std::string& path,
                                     yaml::ReadState& state) {
  yaml::Reader reader(node, path, state);
  bool good = true;
  const auto number = [&](yaml::Reader& from, const char* key, const Range& range) {
    double value = range.low;
    good = from.required_within(key, range, value) && good;
    return value;
  };
  Lengths lengths;
  if (const yaml::Node* normal = reader.take("lognormal")) {
    yaml::Reader of(*normal, path + ".lognormal", state);
    const double mean = number(of, "mean", ranges::kTokens);
    lengths = Lengths::lognormal(mean, number(of, "cv", {1e-3, 10}));
    of.finish();
  } else {
    const bool longest = node.find("longest") != nullptr;
    const double tokens = number(reader, longest ? "longest" : "mean", ranges::kTokens);
    const double ratio = number(reader, "length_ratio", ranges::kFraction);
    // Uniform between ratio x L and L, whose mean is (1 + ratio) / 2 x L.
    lengths = Lengths::uniform(std::llround(longest ? tokens : 2 * tokens / (1 + ratio)), ratio);
  }
  reader.finish();
  return good ? std::optional(lengths) : std::nullopt;
}

std::string idle_priorities(const LoadSpec& load, const std::vector<System>& systems) {
  const auto by_priority = [](const System& system) {
    return system.stack.serving.queue == QueueOrder::priority;
  };
  const bool differ =
      load.trace && std::ranges::adjacent_find(load.trace->requests, std::ranges::not_equal_to(),
                                               &TraceRequest::priority) != load.trace->requests.end();
  if (differ || std::ranges::none_of(systems, by_priority)) return "";
  return "has no effect: priority needs workload.trace with a column of that name, in which requests differ";
}

std::string too_long_request(const Trace& trace, const ModelSpec& model) {
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const TraceRequest& request = trace.requests[i];
    const std::string refusal = model.too_long(std::int64_t{request.prompt} + request.output);
    if (!refusal.empty()) return fmt::format("request {} of the trace: {}", i + 1, refusal);
  }
  return "";
}

yaml::Parsed<double> parse_rate(const yaml::Node& node) {
  return yaml::scalar_text(node, "a rate such as 3 /s").and_then([](const auto& text) {
    return parse_request_rate(text);
  });
}

std::string rate_text(double per_second) { return yaml::format_number(per_second) + " /s"; }

std::optional<double> sent_rate(const LoadSpec& load) {
  const bool drawn =
      load.open() && !load.trace && !load.sessions && load.arrivals != ArrivalProcess::constant;
  return drawn ? std::optional(serving::drawn_rate(load)) : std::nullopt;
}

std::optional<Lengths> parse_number_or_lengths(const yaml::Node& node, const std::string& path, double ratio,
                                               yaml::ReadState& state) {
  if (node.is_map()) return parse_lengths(node, path, state);
  const auto tokens = yaml::parse_integer_node(node, 1, kMostTokens);
  if (tokens) return ratio < 1 ? Lengths::uniform(*tokens, ratio) : Lengths::fixed(*tokens);
  state.bad(path, node.where, tokens.error());
  return {};
}

Sessions parse_sessions(const yaml::Node& node, const std::string& path, double length_ratio,
                        const ModelSpec* model, yaml::ReadState& state) {
  Sessions sessions;
  yaml::Reader reader(node, path, state);
  if (const yaml::Node* turns = reader.take_required("turns"))
    sessions.turns = parse_number_or_lengths(*turns, path + ".turns", 1, state).value_or(Lengths());
  if (sessions.turns.law == LengthLaw::lognormal)
    sessions.turns.longest = std::min(sessions.turns.longest, Sessions::kMostTurns);
  if (const yaml::Node* added = reader.take_required("new_tokens"))
    sessions.new_tokens =
        parse_number_or_lengths(*added, path + ".new_tokens", length_ratio, state).value_or(Lengths());
  if (const yaml::Node* think = reader.take("think_time")) {
    const auto read = [&](yaml::Reader& from, const char* key, const yaml::Node* time) {
      Seconds seconds(sessions.think);
      if (time != nullptr) from.read_within(key, *time, ranges::kTime, seconds);
      sessions.think = seconds.value();
    };
    if (think->is_map()) {
      yaml::Reader of(*think, path + ".think_time", state);
      read(of, "exponential", of.take_required("exponential"));
      of.finish();
      sessions.random_think = true;
    } else {
      read(reader, "think_time", think);
    }
  }
  reader.integer("shared_prefix_tokens", 0, kMostTokens, sessions.shared.end);
  reader.integer("context_tokens", 1, kMostTokens, sessions.context);
  if (model != nullptr && model->position == PositionKind::learned)
    sessions.context = std::min<std::int64_t>(sessions.context, model->max_positions);
  reader.finish();
  return sessions;
}

}  // namespace shardscape::sweep
