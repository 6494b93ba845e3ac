// Writes made-up results for the tests of the Python loader: FOLDER/done.h5 (finished) and
// FOLDER/running.h5.parts (the same study, interrupted after its last block but before the assembly); a study
// with fault samples likewise.
#include <iostream>
#include <string_view>

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

void seal(const ColumnTable& table, const SegmentStore& store, BlockRange range) {
  SegmentWriter writer(store);
  BlockEncoder encoder(table, store.manifest().layout.rows_per_block, store.manifest().study.objectives);
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

/// Parts of a study of 1,001 points: FOLDER/first.h5, FOLDER/sample.h5 and FOLDER/shard.h5.
void write_parts(const std::filesystem::path& folder) {
  const ColumnTable table(Phase::training, fake_hardware());
  const auto write = [&](const char* name, const Manifest& manifest) {
    auto store = SegmentStore::create(parts_folder(folder / name), manifest);
    seal(table, store, manifest.layout.blocks);
    assemble(std::move(store), folder / name, manifest.run);
  };
  Manifest manifest = fake_manifest(128, 64);
  manifest.layout.selection = {SelectionKind::first, 1001};
  write("first.h5", manifest);
  manifest.layout.selection = {SelectionKind::sample, 1001, 5};
  write("sample.h5", manifest);
  manifest = fake_manifest(1001, 64);
  manifest.layout.blocks = {1, 1};
  manifest.shards = {2, 2, 16};
  write("shard.h5", manifest);
}

/// The ten best rows of 1,001: FOLDER/best.h5 and, as candidates before the assembly, FOLDER/choosing.h5.parts.
void write_best(const std::filesystem::path& folder) {
  const ColumnTable table(Phase::training, fake_hardware());
  Manifest manifest = fake_manifest(1001, 64);
  manifest.study.stored_rows = {RowChoice::top, 10, {}};
  for (const char* name : {"choosing.h5", "best.h5"}) {
    auto store = SegmentStore::create(parts_folder(folder / name), manifest);
    SegmentWriter writer(store, {.rows = 300});
    BlockEncoder encoder(table, 64, manifest.study.objectives, manifest.study.stored_rows, writer.selector());
    for (std::uint64_t block = 0; block < manifest.layout.blocks.count; ++block)
      writer.append(encoder.encode(block, FakeBlock(manifest.layout, block).records), {});
    writer.seal();
    if (std::string_view(name) == "best.h5") assemble(std::move(store), folder / name, manifest.run);
  }
}

/// Three samples of each even point: FOLDER/faults.h5 and, before the assembly, FOLDER/sampling.h5.parts.
void write_faulty(const std::filesystem::path& folder) {
  Manifest manifest = fake_manifest(200, 64);
  manifest.sample_columns.assign(fault_sample_columns().begin(), fault_sample_columns().end());
  const ColumnTable table(Phase::training, fake_hardware(), {.faults = true});
  manifest.columns.assign(table.columns().begin(), table.columns().end());
  for (const char* name : {"sampling.h5", "faults.h5"}) {
    auto store = SegmentStore::create(parts_folder(folder / name), manifest);
    BlockEncoder encoder(table, manifest.layout.rows_per_block, manifest.study.objectives);
    SegmentWriter writer(store, {.rows = 100});
    for (std::uint64_t index = 0; index < manifest.layout.blocks.count; ++index) {
      EncodedBlock block = encoder.encode(index, FakeBlock(manifest.layout, index).records);
      for (std::uint64_t i = 0; i < block.rows; i += 2) {
        const std::uint64_t id = manifest.layout.first_row(index) + i;
        for (std::int32_t sample = 0; sample < 3; ++sample) {
          const double slowdown = 0.01 * sample;
          block.samples.push_back({id, sample, 0, Status::ok, FaultKind::hard_link, sample, -1, 0.5,
                                   static_cast<double>(id) * (1 + slowdown), slowdown});
        }
      }
      writer.append(std::move(block), {});
    }
    writer.seal();
    if (std::string_view(name) == "faults.h5") assemble(std::move(store), folder / name, manifest.run);
  }
}

}  // namespace
}  // namespace shardscape::results

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    shardscape::results::write(argv[1]);
    shardscape::results::write_faulty(argv[1]);
    shardscape::results::write_parts(argv[1]);
    shardscape::results::write_best(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
