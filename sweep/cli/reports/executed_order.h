// What executing rows makes of their order, in words.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace shardscape::cli {

/// The order of rows is said to turn over only where executed values that change places differ by more than this share
/// of the better one: beneath it stand the rounding of both modes and of the times that are shown.
inline constexpr double kTurnsOver = 0.001;

/// What executing makes of an order. `costs`: executed, by row in the order before; smaller is better. `numbers`: of
/// these rows in the table, counted from 0.
std::string order_text(std::span<const double> costs, std::span<const std::size_t> numbers);

}  // namespace shardscape::cli
