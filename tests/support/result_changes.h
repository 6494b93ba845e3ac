// Changes to result files that their readers cannot tell from what the program has written.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <functional>

namespace shardscape::test {

/// Opens a finished file, or one of a parts folder, with HDF5's own functions to change it.
void change_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& change);

/// change_file(), and then gives every dataset of the file the checksums of what it holds now.
void change_and_renew(const std::filesystem::path& path, const std::function<void(hid_t file)>& change);

}  // namespace shardscape::test
