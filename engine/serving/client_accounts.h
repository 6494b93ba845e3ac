// Sums up what each client's measured requests took, and computes the means by the laws of pooled_course.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/pooled_course.h"

namespace shardscape::serving {

class ClientAccounts {
 public:
  explicit ClientAccounts(std::int64_t clients)
      : clients_(static_cast<std::size_t>(clients)), idle_(clients) {}

  struct Request {
    double sent = 0, first_token = 0, done = 0;
    /// Seconds of its transfer, and the part of it in which nothing else went on for it.
    double transfer = 0, exposed = 0;
    const IterationTime& classes;
  };
  void add(std::int32_t client, const Request& request) {
    Client& c = clients_[static_cast<std::size_t>(client)];
    if (c.requests == 0) {
      c.begin = request.sent;
      --idle_;
    }
    c.requests += 1;
    c.end = request.done;
    c.ttft += request.first_token - request.sent;
    c.transfer += request.transfer;
    c.exposed += request.exposed;
    serving::add(c.classes, request.classes, 1);
  }
  /// Whether every client has had a request.
  [[nodiscard]] bool complete() const { return idle_ == 0; }

  /// Throughput, means, classes and transfers; complete() must hold.
  void fill(std::int64_t output_tokens, DisaggregatedMeasured& out) const {
    Measured& m = out.requests;
    m.ttft.mean = m.e2e.mean = m.requests_per_s = 0;
    for (const Client& c : clients_) m.requests_per_s += c.requests / (c.end - c.begin);
    for (const Client& c : clients_) {
      const double weight = 1 / ((c.end - c.begin) * m.requests_per_s);
      m.e2e.mean += weight * (c.end - c.begin);
      m.ttft.mean += weight * c.ttft;
      out.transfer += weight * c.transfer;
      out.exposed_transfer += weight * c.exposed;
      serving::add(m.classes, c.classes, weight);
    }
    if (output_tokens > 1) m.itl.mean = (m.e2e.mean - m.ttft.mean) / static_cast<double>(output_tokens - 1);
    m.waiting = m.e2e.mean - total(m.classes) - out.exposed_transfer;
    // A difference within the rounding of sums of a few thousand durations counts as zero.
    if (m.waiting < 1e-12 * m.e2e.mean) m.waiting = 0;
  }

 private:
  /// The measured time of one client and sums over its requests, in seconds.
  struct Client {
    double requests = 0, begin = 0, end = 0;
    double ttft = 0, transfer = 0, exposed = 0;
    IterationTime classes{};
  };
  std::vector<Client> clients_;
  std::int64_t idle_;
};

}  // namespace shardscape::serving
