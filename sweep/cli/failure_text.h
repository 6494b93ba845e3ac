// What a failure that no command knows of says to the user.
#pragma once

#include <exception>
#include <string>

namespace shardscape::cli {

/// Memory that there is not (std::bad_alloc) and a length that no memory has (std::length_error, a number that got past
/// all checks) are told apart; anything else speaks for itself.
std::string failure_text(const std::exception& failure);

}  // namespace shardscape::cli
