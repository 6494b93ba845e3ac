// Reads a table of requests, CSV with a line of names:
//
//   arrival_s, prompt_tokens, output_tokens        seconds from any beginning
//   timestamp, input_length, output_length         Mooncake's names, milliseconds
//   TIMESTAMP, ContextTokens, GeneratedTokens      Azure's: "2023-11-16 18:17:03.9799600", perhaps with +00:00
//
// Beside any of them `priority`, and `reused_prefix_blocks` with `parent_request`: the first so many blocks of 512
// tokens are those of that request, the number of a line above, from 0 on. Other columns are passed over. Arrivals
// count from the first one.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/spec/request_load.h"

namespace shardscape::sweep {

/// The requests of a table, or what is wrong with its lines, a problem each with its line: a missing or unreadable
/// number, a length out of range, a time before that of the line above. One more than are shown at most.
tl::expected<Trace, std::vector<std::string>> parse_trace(std::string_view text);

/// The line, from 1 on, of the request with that index in the text of a table that can be parsed.
std::size_t line_of_request(std::string_view text, std::size_t request);

}  // namespace shardscape::sweep
