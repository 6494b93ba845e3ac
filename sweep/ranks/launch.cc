#include "sweep/ranks/launch.h"

#include <dlfcn.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "sweep/ranks/mpi_entry.h"

namespace shardscape::ranks {

namespace fs = std::filesystem;

namespace {

std::optional<int> number_in(const Environment& environment, const char* name) {
  const char* const text = environment(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 1) return std::nullopt;
  return number;
}

Launch of_size(Start start, int size) { return size == 1 ? Launch{} : Launch{start, size}; }

}  // namespace

Launch launch_of(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto size = number_in(environment, name)) return of_size(Start::together, *size);
  }
  const auto tasks = number_in(environment, "SLURM_STEP_NUM_TASKS");
  if (environment("PMIX_RANK") != nullptr) return of_size(Start::together, tasks.value_or(0));
  return of_size(Start::copies, tasks.value_or(1));
}

std::optional<fs::path> mpi_module() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  const fs::path beside = binary.parent_path() / kMpiModule;  // as built
  if (fs::exists(beside, error)) return beside;
  const fs::path installed = binary.parent_path().parent_path() / SHARDSCAPE_LIBRARY_DIR / kMpiModule;
  if (fs::exists(installed, error)) return installed;
  return std::nullopt;
}

std::unique_ptr<Ranks> join_with_mpi(const fs::path& module) {
  const auto failed = [&](const char* what) {
    const char* const why = dlerror();
    return std::runtime_error(module.string() + ": " + what + ": " + (why == nullptr ? "unknown" : why));
  };
  // Global: the parts that MPI opens itself look for its symbols among those of the program. Never closed: its
  // threads and handlers at exit stay.
  void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) throw failed("can't be opened");
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym() is for
  const auto entry = reinterpret_cast<MpiEntry*>(dlsym(handle, kMpiEntry));
  if (entry == nullptr) throw failed("is of another version of the program");
  return std::unique_ptr<Ranks>(entry());
}

}  // namespace shardscape::ranks
