#include "sweep/modules/module.h"

#include <dlfcn.h>

#include <stdexcept>
#include <system_error>

namespace shardscape::modules {

namespace fs = std::filesystem;

namespace {

const char kAnchor = 0;  // its address tells which file this code is in

/// The folder of the file that this code is in: of the program, or of a shared object inside another one. Empty where
/// that is not known.
fs::path own_folder(bool& shared) {
  std::error_code error;
  Dl_info info{};
  shared = dladdr(&kAnchor, &info) != 0 && fs::path(info.dli_fname).extension() == ".so";
  const fs::path file =
      shared ? fs::canonical(info.dli_fname, error) : fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : file.parent_path();
}

}  // namespace

std::vector<fs::path> own_places() {
  bool shared = false;
  const fs::path folder = own_folder(shared);
  if (folder.empty()) return {};
  if (!shared) return {folder.parent_path()};
  return {folder, folder.parent_path().parent_path().parent_path().parent_path()};
}

std::optional<fs::path> find(std::string_view file) {
  std::error_code error;
  bool shared = false;
  const fs::path folder = own_folder(shared), above = folder.parent_path();
  std::vector<fs::path> places = {folder, above};
  if (shared) places.push_back(above.parent_path());
  for (const fs::path& place : own_places()) places.push_back(place / SHARDSCAPE_LIBRARY_DIR);
  for (const fs::path& place : places) {
    if (!place.empty() && fs::exists(place / file, error)) return place / file;
  }
  return std::nullopt;
}

void* open(const fs::path& module, const char* entry, Symbols symbols) {
  const auto failed = [&](const char* what) {
    const char* const why = dlerror();
    return std::runtime_error(module.string() + ": " + what + ": " + (why == nullptr ? "unknown" : why));
  };
  void* const handle =
      dlopen(module.c_str(), RTLD_NOW | (symbols == Symbols::shared ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle == nullptr) throw failed("can't be opened");
  void* const found = dlsym(handle, entry);
  if (found == nullptr) throw failed("is of another version of the program");
  return found;
}

}  // namespace shardscape::modules
