#include "sweep/cli/terminal/failure_text.h"

#include <new>
#include <stdexcept>

namespace shardscape::cli {

std::string failure_text(const std::exception& failure) {
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr)
    return "memory: this needs more than there is";
  if (dynamic_cast<const std::length_error*>(&failure) != nullptr)
    return std::string("a list would have to be longer than any can be (") + failure.what() +
           "): a number of the input is too large, which should have been said by its name; please report it";
  return failure.what();
}

}  // namespace shardscape::cli
