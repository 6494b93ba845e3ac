// Which rows are kept apart while constants are fitted: a fixed function of the row's id, so that fits and
// validations agree and no one chooses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shardscape::validate {

/// `parts` of `of` equal classes of ids are held out; 0 < parts < of.
struct HoldOut {
  std::uint64_t parts = 1;
  std::uint64_t of = 3;
};

/// "1/3". The error says what would be right.
tl::expected<HoldOut, std::string> parse_hold_out(std::string_view text);

/// 64-bit FNV-1a.
std::uint64_t id_hash(std::string_view id);

/// id_hash() modulo `of` is below `parts`.
bool is_held_out(std::string_view id, HoldOut share);

}  // namespace shardscape::validate
