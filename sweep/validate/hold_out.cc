#include "sweep/validate/hold_out.h"

#include <fmt/format.h>

#include "sweep/yaml/number.h"

namespace shardscape::validate {

tl::expected<HoldOut, std::string> parse_hold_out(std::string_view text) {
  constexpr std::int64_t kMostClasses = 1000;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto of = yaml::parse_integer(text.substr(slash + 1), 2, kMostClasses);
    const auto parts = yaml::parse_integer(text.substr(0, slash), 1, of.value_or(2) - 1);
    if (parts && of) return HoldOut{static_cast<std::uint64_t>(*parts), static_cast<std::uint64_t>(*of)};
  }
  return tl::unexpected(
      fmt::format("'{}' is no share of the rows; write it as N/M with 0 < N < M, such as 1/3", text));
}

std::uint64_t id_hash(std::string_view id) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV's offset basis; its prime is below
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

bool is_held_out(std::string_view id, HoldOut share) { return id_hash(id) % share.of < share.parts; }

}  // namespace shardscape::validate
