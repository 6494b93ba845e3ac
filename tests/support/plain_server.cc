// The plain simulation of one server: a list of requests, one iteration after the other, and every token's moment kept.
// It is slow, and the oracle for trajectory() and measure().
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/plain_courses.h"

namespace shardscape::serving {

namespace {

struct Client {
  double sent = 0;
  std::int64_t order = 0;  ///< order in which requests were sent, over all of them
  std::int64_t read = 0;   ///< tokens of the prompt read so far
  std::int64_t piece = 0;  ///< tokens of the prompt that this iteration reads
  bool admitted = false;
  std::vector<double> tokens;  ///< moments of the tokens given so far
};

struct Done {
  double sent, end;
  std::vector<double> tokens;
};

/// One iteration and the requests that took part in it.
struct Record {
  double start, end;
  IterationTime time;
  double decoding;
  double progressing;
};

class PlainServer {
 public:
  PlainServer(const Load& load, const Rules& rules, const Timer& timer)
      : load_(load), rules_(rules), timer_(timer), clients_(static_cast<std::size_t>(load.clients)) {
    for (Client& client : clients_) client.order = sent_++;
  }

  Measured run() {
    const auto clients = static_cast<std::int64_t>(clients_.size());
    const std::int64_t all = generations(load_, rules_), measured = measured_generations(all);
    std::vector<std::int64_t> reference;
    std::int64_t reference_done = 0, next_reference = clients;
    while (done_ < all * clients) {
      const std::int64_t before = done_;
      iterate();
      if (done_ == before) continue;
      if (done_ - reference_done >= clients && reference == progress()) {
        begin_measuring();
        for (const std::int64_t end = done_ + (done_ - reference_done); done_ < end;) iterate();
        return measure(true);
      }
      if (done_ >= next_reference) {
        reference = progress();
        reference_done = done_;
        next_reference += std::min(next_reference, kMostPeriod * clients);
      }
      if (before < (all - measured) * clients && done_ >= (all - measured) * clients) begin_measuring();
    }
    return measure(false);
  }

 private:
  /// What each client's request still needs, in the order of sending.
  std::vector<std::int64_t> progress() {
    std::vector<const Client*> order;
    for (const Client& client : clients_) order.push_back(&client);
    std::ranges::sort(order, {}, [](const Client* c) { return c->order; });
    std::vector<std::int64_t> state;
    for (const Client* c : order) {
      state.push_back(load_.prompt_tokens - c->read);
      state.push_back(load_.output_tokens - static_cast<std::int64_t>(c->tokens.size()));
    }
    return state;
  }

  [[nodiscard]] bool reading(const Client& c) const { return c.read < load_.prompt_tokens; }

  void iterate() {
    const bool chunked = rules_.policy == ServingPolicy::chunked;
    std::vector<Client*> running;
    std::vector<Client*> queue;
    for (Client& client : clients_) (reading(client) ? queue : running).push_back(&client);
    std::ranges::sort(queue, {}, [](const Client* c) { return c->order; });
    std::int64_t admitted = static_cast<std::int64_t>(running.size());
    std::int64_t budget = rules_.token_budget - (chunked ? admitted : 0);
    std::vector<Client*> readers;
    for (Client* client : queue) {
      const std::int64_t left = load_.prompt_tokens - client->read;
      if (admitted == rules_.slots || budget <= 0) break;
      if (!chunked && !readers.empty() && left > budget) break;
      client->piece = chunked ? std::min(left, budget) : left;
      budget -= client->piece;
      ++admitted;
      readers.push_back(client);
    }
    if (!chunked && !readers.empty()) running.clear();
    execute(running, readers);
  }

  void execute(const std::vector<Client*>& running, const std::vector<Client*>& readers) {
    Iteration iteration;
    for (const Client* client : running) {
      iteration.decoding += 1;
      iteration.cached +=
          static_cast<double>(load_.prompt_tokens) + static_cast<double>(client->tokens.size());
    }
    for (Client* client : readers) {
      const auto piece = static_cast<double>(client->piece), before = static_cast<double>(client->read);
      iteration.add_piece(before, piece, load_.window);
      client->read += client->piece;
      if (!reading(*client)) iteration.first_tokens += 1;
    }
    const IterationTime time = timer_(iteration);
    const double start = now_;
    for (const double part : time) now_ += part;
    if (measuring_) {
      records_.push_back(
          {start, now_, time, iteration.decoding, static_cast<double>(running.size() + readers.size())});
    }
    for (Client* client : running) client->tokens.push_back(now_);
    for (Client* client : readers) {
      if (!reading(*client)) client->tokens.push_back(now_);
    }
    finish();
  }

  /// Replaces requests that are done by new ones, the oldest first.
  void finish() {
    std::vector<Client*> ready;
    for (Client& client : clients_) {
      if (static_cast<std::int64_t>(client.tokens.size()) == load_.output_tokens) ready.push_back(&client);
    }
    std::ranges::sort(ready, {}, [](const Client* c) { return c->order; });
    for (Client* client : ready) {
      ++done_;
      if (measuring_) ended_.push_back({client->sent, now_, std::move(client->tokens)});
      *client = Client{};
      client->sent = now_;
      client->order = sent_++;
    }
  }

  static Spread spread(std::vector<double> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const auto rank = [&](double share) {
      const double position = std::ceil(share * static_cast<double>(values.size()) - 1e-9);
      return values[static_cast<std::size_t>(std::max(1.0, position)) - 1];
    };
    double total = 0;
    for (const double value : values) total += value;
    return {total / static_cast<double>(values.size()), rank(0.5), rank(0.95)};
  }

  void begin_measuring() {
    measuring_ = true;
    from_ = now_;
  }

  /// The gaps between consecutive tokens of all requests where the later token lies in the measured part.
  [[nodiscard]] std::vector<double> gaps() const {
    std::vector<double> values;
    const auto collect = [&](const std::vector<double>& tokens) {
      for (std::size_t i = 1; i < tokens.size(); ++i) {
        if (tokens[i] > from_) values.push_back(tokens[i] - tokens[i - 1]);
      }
    };
    for (const Done& request : ended_) collect(request.tokens);
    for (const Client& client : clients_) collect(client.tokens);
    return values;
  }

  [[nodiscard]] Measured measure(bool periodic) const {
    std::vector<double> ttft, e2e;
    for (const Done& request : ended_) {
      ttft.push_back(request.tokens.front() - request.sent);
      e2e.push_back(request.end - request.sent);
    }
    const std::vector<double> between = gaps();
    const auto steps = static_cast<double>(load_.output_tokens - 1);
    const double done =
        steps > 0 ? static_cast<double>(between.size()) / steps : static_cast<double>(e2e.size());
    Measured out;
    out.periodic = periodic;
    out.ttft = spread(ttft);
    out.e2e = spread(e2e);
    out.itl = spread(between);
    out.requests_per_s = done / (now_ - from_);
    out.e2e.mean = static_cast<double>(load_.clients) / out.requests_per_s;
    if (!periodic) out.ttft.mean = std::max(0.0, out.e2e.mean - steps * out.itl.mean);
    double iterations = 0, tokens = 0, progressing = 0;
    for (const Record& record : records_) {
      iterations += record.decoding > 0 ? 1 : 0;
      tokens += record.decoding;
      for (const TimeClass c : kServingClasses) out.classes[c] += record.progressing * record.time[c] / done;
      progressing += record.progressing * (record.end - record.start);
    }
    if (iterations > 0) out.decode_batch = tokens / iterations;
    out.waiting = std::max(0.0, out.e2e.mean - progressing / done);
    return out;
  }

  const Load load_;
  const Rules rules_;
  const Timer& timer_;
  std::vector<Client> clients_;
  bool measuring_ = false;
  std::vector<Done> ended_;      ///< in the measured part
  std::vector<Record> records_;  ///< in the measured part
  double now_ = 0, from_ = 0;
  std::int64_t done_ = 0;
  std::int64_t sent_ = 0;
};

}  // namespace

Measured serve_plainly(const Load& load, const Rules& rules, const Timer& timer) {
  return PlainServer(load, rules, timer).run();
}

}  // namespace shardscape::serving
