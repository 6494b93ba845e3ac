// Writes made-up results for the tests of the Python loader: FOLDER/done.h5 (finished) and
// FOLDER/running.h5.parts (the same study, interrupted after its last block but before the assembly).
#include <iostream>

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

void seal(const ColumnTable& table, const SegmentStore& store, BlockRange range) {
  SegmentWriter writer(store);
  BlockEncoder encoder(table, store.manifest().layout.rows_per_block);
  for (std::uint64_t block = range.first; block < range.end(); ++block) {
    writer.append(encoder.encode(block, FakeBlock(store.manifest().layout, block).records), {});
  }
  writer.seal();
}

void write(const std::filesystem::path& folder) {
  const Manifest manifest = fake_manifest(1001, 64);
  const ColumnTable table(Phase::training, fake_hardware());
  const auto running = SegmentStore::create(parts_folder(folder / "running.h5"), manifest);
  seal(table, running, {9, 7});
  seal(table, running, {0, 9});
  auto done = SegmentStore::create(parts_folder(folder / "done.h5"), manifest);
  seal(table, done, {0, 16});
  assemble(std::move(done), folder / "done.h5", manifest.run);
}

}  // namespace
}  // namespace shardscape::results

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    shardscape::results::write(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
