#include "sweep/modules/module.h"

#include <dlfcn.h>

#include <stdexcept>
#include <system_error>

namespace shardscape::modules {

namespace fs = std::filesystem;

std::optional<fs::path> find(std::string_view file) {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  const fs::path folder = binary.parent_path(), above = folder.parent_path();
  for (const fs::path& place : {folder, above, above / SHARDSCAPE_LIBRARY_DIR}) {
    if (fs::exists(place / file, error)) return place / file;
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
