// Writes the seeds of the result fuzzer that are readable, or nearly so, anew: they are of the schema's present
// version. `ninja result_seeds` puts them into the corpus.
#include <cstdint>
#include <iostream>
#include <string>

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

std::string content_of_seed(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A finished file as the fuzzer takes it.
std::string finished_seed(const std::string& file) { return std::string(1, '\0') + file; }

/// A running sweep as the fuzzer takes it: the length of the manifest, the manifest, a segment.
std::string running_seed(const std::string& manifest, const std::string& segment) {
  std::string seed(1, '\1');
  for (std::size_t byte = 0; byte < sizeof(std::uint32_t); ++byte)
    seed += static_cast<char>(manifest.size() >> 8 * byte & 0xFF);
  return seed + manifest + segment;
}

/// The bytes with some of them zero, from a mark on.
std::string zeroed(std::string bytes, std::string_view mark, std::size_t after, std::size_t count) {
  return bytes.replace(bytes.find(mark) + after, count, count, '\0');
}

Manifest manifest_of(bool faults, const StoredRows& rows) {
  Manifest manifest = fake_manifest(36, 4);
  manifest.study.stored_rows = rows;
  if (!faults) return manifest;
  const ColumnTable table(Phase::training, fake_hardware(), {.faults = true});
  manifest.columns.assign(table.columns().begin(), table.columns().end());
  manifest.sample_columns.assign(fault_sample_columns().begin(), fault_sample_columns().end());
  return manifest;
}

void write(const fs::path& corpus, const std::string& name, const std::string& bytes) {
  std::ofstream(corpus / name, std::ios::binary | std::ios::trunc) << bytes;
}

void write_seeds(const fs::path& corpus, const fs::path& folder) {
  const auto make = [&](const char* name, bool faults, const StoredRows& rows) {
    const Manifest manifest = manifest_of(faults, rows);
    const ColumnTable table(Phase::training, fake_hardware(), {.faults = faults});
    const fs::path output = folder / (std::string(name) + ".h5"), parts = parts_folder(output);
    SegmentStore store = SegmentStore::create(parts, manifest);
    {
      SegmentWriter writer(store);
      BlockEncoder encoder(table, 4, manifest.study.objectives, rows, writer.selector());
      for (std::uint64_t block = 0; block < 9; ++block) {
        const FakeBlock made(manifest.layout, block);
        EncodedBlock encoded = encoder.encode(block, made.records);
        if (faults)
          encoded.samples.push_back(
              {made.points.front().id, 0, 0, Status::ok, FaultKind::hard_link, 0, -1, 0.5, 1.0, 0.25});
        writer.append(std::move(encoded), {});
      }
      writer.seal();
    }
    const std::string running = running_seed(content_of_seed(parts / "manifest.h5"),
                                             content_of_seed(parts / "blocks-000000000000-000000000009.h5"));
    if (std::string(name) == "finished") {
      write(corpus, "running.bin", running);
      write(corpus, "manifest_alone.bin", running_seed(content_of_seed(parts / "manifest.h5"), ""));
    }
    assemble(std::move(store), output, manifest.run);
    const std::string seed = finished_seed(content_of_seed(output));
    write(corpus, std::string(name) + ".bin", seed);
    return seed;
  };
  const std::string seed = make("finished", false, {});
  make("faults", true, {});
  make("stored_top", false, {RowChoice::top, 10, {}});
  write(corpus, "damaged_dimensions.bin", zeroed(seed, "GCOL", 16, 128));
  write(corpus, "damaged_text.bin", zeroed(seed, "study: made up", 0, 7));
  write(corpus, "damaged_index.bin", zeroed(seed, "TREE", 24, 64));
  write(corpus, "cut.bin", seed.substr(0, 3001));
}

}  // namespace
}  // namespace shardscape::results

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shardscape-seeds-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  try {
    shardscape::results::write_seeds(argv[1], folder);
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
