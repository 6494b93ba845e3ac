// Modules: parts of the program that few commands need and that bring large libraries along (MPI, Ceres). Each is
// a file of its own, opened only where it is called for: a command that needs none starts in a few milliseconds.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace shardscape::modules {

/// Folders below which what belongs to the program lies where it is installed: the one above its own; of a Python
/// package, its own and the one that has lib/pythonN.M/dist-packages. Empty where the program has no file.
std::vector<std::filesystem::path> own_places();

/// Where the module `file` lies: beside the program or, of a program in a folder of the build (its tests), above
/// that folder; otherwise where `cmake --install` puts it. Nothing where it is in none of these places.
std::optional<std::filesystem::path> find(std::string_view file);

/// Which code sees the symbols of the libraries that a module brings along.
enum class Symbols {
  own,  ///< only the module
  /// Everything opened later: needed by libraries that open plugins of their own, which look for these symbols.
  shared
};

/// Opens the module and returns its function `entry`. The module is never closed: its threads and exit handlers stay.
/// Throws std::runtime_error where it can't be opened or lacks the function.
void* open(const std::filesystem::path& module, const char* entry, Symbols symbols);

/// As open(), with the function's type. A change of its parameters or result must come with a new name of the entry.
template <class Function>
Function* entry(const std::filesystem::path& module, const char* name, Symbols symbols = Symbols::own) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym() is for
  return reinterpret_cast<Function*>(open(module, name, symbols));
}

}  // namespace shardscape::modules
