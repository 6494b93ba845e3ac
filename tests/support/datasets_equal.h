// Equality of result files: datasets only, bit by bit.
#pragma once

#include <filesystem>
#include <string>

#include "results_schema/disk/files.h"

namespace shardscape::test {

/// True where both finished files hold the same datasets with the same shapes, types and bytes (NaNs
/// included) and the same `units`. Root attributes (time, host, threads) do not count. Otherwise
/// `difference`, where given, names the first one: "/points/mfu row 17: 0.41 and 0.42". StoreError where a
/// file can't be read.
bool datasets_equal(const std::filesystem::path& a, const std::filesystem::path& b,
                    std::string* difference = nullptr);

}  // namespace shardscape::test
