// Is nothing written but to files that were made for it?
#include "results_schema/disk/files.h"

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ResultsTest {
 protected:
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(FilesTest, ALinkAtTheTemporaryNameIsReplacedAndNeverFollowed) {
  std::ofstream(file("gold.txt")) << "gold";
  fs::create_symlink("gold.txt", file("note.tmp"));
  const std::string text = "text";
  write_durably(file("note"), std::as_bytes(std::span(text)));
  EXPECT_EQ(text_of(file("gold.txt")), "gold");
  EXPECT_FALSE(fs::is_symlink(fs::symlink_status(file("note"))));
  EXPECT_EQ(text_of(file("note")), "text");
  EXPECT_FALSE(fs::exists(fs::symlink_status(file("note.tmp"))));
}

TEST_F(FilesTest, CreatedFilesAreNew) {
  std::ofstream(file("gold.txt")) << "gold";
  fs::create_symlink("gold.txt", file("link"));
  fs::create_symlink("nowhere", file("dangling"));
  for (const char* name : {"gold.txt", "link", "dangling"})
    EXPECT_THROW((void)Descriptor::create(file(name)), StoreError) << name;
  EXPECT_EQ(text_of(file("gold.txt")), "gold");
  EXPECT_FALSE(fs::exists(file("nowhere")));
}

TEST_F(FilesTest, ASegmentIsAssembledBesideALinkThatWasPlantedMeanwhile) {
  const Manifest manifest = fake_manifest(8, 4);
  SegmentStore store = SegmentStore::create(file("out.h5.parts"), manifest);
  {
    SegmentWriter writer(store, {8, std::chrono::seconds(5)});
    for (std::uint64_t b = 0; b < 2; ++b)
      writer.append(BlockEncoder(table_, manifest.layout.rows_per_block, manifest.study.objectives)
                        .encode(b, FakeBlock(manifest.layout, b).records),
                    {});
    writer.seal();
  }
  store.scan();
  std::ofstream(file("gold.txt")) << "gold";
  fs::create_symlink("../gold.txt", file("out.h5.parts") / "assembled.h5.tmp");
  (void)assemble(std::move(store), OutputPath(file("out.h5")), manifest.run);
  EXPECT_EQ(text_of(file("gold.txt")), "gold");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file("out.h5"))));
}

// Reading it would take hours, whatever line it ends in.
TEST_F(FilesTest, ASparseFileIsNotReadForTheSakeOfItsLastLine) {
  constexpr std::uintmax_t kClaimed = std::uintmax_t{1} << 42U;
  const std::string line = "\nsha256:" + std::string(64, '0') + "\n";
  std::ofstream(file("sparse")).close();
  fs::resize_file(file("sparse"), kClaimed - line.size());
  std::ofstream(file("sparse"), std::ios::app | std::ios::binary) << line;
  ASSERT_EQ(fs::file_size(file("sparse")), kClaimed);
  EXPECT_EQ(seal_of(file("sparse")), Seal::broken);
}

TEST_F(FilesTest, ASparseFileWithoutAChecksumIsNotRead) {
  std::ofstream(file("sparse")).close();
  fs::resize_file(file("sparse"), std::uintmax_t{1} << 42U);  // more than any memory
  EXPECT_EQ(seal_of(file("sparse")), Seal::none);
  std::vector<std::byte> bytes(3U << 20U, std::byte{7});
  append_checksum(bytes);
  std::ofstream(file("whole"), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(seal_of(file("whole")), Seal::whole);
  bytes[1] = std::byte{8};
  std::ofstream(file("broken"), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(seal_of(file("broken")), Seal::broken);
}

}  // namespace
}  // namespace shardscape::results
