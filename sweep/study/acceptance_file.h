// Reads how many drafted tokens a model accepts from a table, CSV with a line of names: model, draft_tokens (1, 2, ..)
// and acceptance_length, the mean number of tokens that a verification gives, itself included; perhaps method and mode.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace shardscape::sweep {

/// Which lines of the table are meant; empty: any.
struct AcceptanceSeries {
  std::string model, method, mode;
};

/// Shares of iterations in which the i-th draft is accepted (Speculation::acceptance): the length with i drafts less
/// that with i - 1. Each length is a measurement of its own, of several the mean: a share is no more than the one
/// before it and at least 0. Or what is wrong, with the line. `means`, where given, gets what to say of lengths that
/// are means of several lines; it stays empty where none is.
tl::expected<std::vector<double>, std::string> parse_acceptance(std::string_view text,
                                                                const AcceptanceSeries& series,
                                                                std::string* means = nullptr);

}  // namespace shardscape::sweep
