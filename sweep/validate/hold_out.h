// Which rows are held out while constants are fitted: a fixed function of a row's id, so that fits and validations
// agree and nobody can choose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shardscape::validate {

/// Holds out `parts` of `of` equal classes of ids; 0 < parts < of.
struct HoldOut {
  std::uint64_t parts = 1;
  std::uint64_t of = 3;
};

/// Reads "1/3". The error says what would be right.
tl::expected<HoldOut, std::string> parse_hold_out(std::string_view text);

/// The 64-bit FNV-1a hash of an id.
std::uint64_t id_hash(std::string_view id);

/// Whether an id is held out: id_hash() modulo `of` is below `parts`.
bool is_held_out(std::string_view id, HoldOut share);

}  // namespace shardscape::validate
