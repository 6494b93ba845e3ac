// Is every text found where the format says it lies, and nothing else followed? The collections are laid out
// here by hand, from the HDF5 File Format Specification 3.0, III.E "Global Heap".
#include "results_schema/global_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

std::string little_endian(std::uint64_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, number >>= 8U) text += static_cast<char>(number & 0xffU);
  return text;
}

/// Index, reference count, reserved bytes, size; then the data, filled up to a multiple of eight.
std::string object(std::uint16_t index, std::uint64_t size, std::string data) {
  data.resize((data.size() + 7) / 8 * 8, '\0');
  return little_endian(index, 2) + little_endian(1, 2) + std::string(4, '\0') + little_endian(size, 8) + data;
}
std::string object(std::uint16_t index, const std::string& data) { return object(index, data.size(), data); }
/// The size of free space counts its header.
std::string free_space(std::uint64_t size) { return object(0, size, std::string(size - 16, '\0')); }

std::string collection(const std::string& objects, std::uint64_t size) {
  return std::string("GCOL\1\0\0\0", 8) + little_endian(size, 8) + objects;
}
std::string collection(const std::string& objects) { return collection(objects, objects.size() + 16); }

class GlobalHeapTest : public ResultsTest {
 protected:
  static constexpr std::uint64_t kAt = 24;  // place of the collection; other bytes lie before and after it

  std::filesystem::path write(const std::string& bytes, std::size_t behind = 100) {
    const auto path = file("heap.bin");
    std::ofstream(path, std::ios::binary) << std::string(kAt, 'b') << bytes << std::string(behind, 'a');
    return path;
  }
  static std::string read(const std::filesystem::path& path, std::uint64_t length, std::uint32_t index) {
    return GlobalHeaps(path).read({length, kAt, index}, "title");
  }
};

TEST_F(GlobalHeapTest, TextsOfEveryLengthAreFound) {
  const std::string eight = "exactly8", five("a\0b\0c", 5), empty;
  const std::string all = object(7, eight) + object(2, empty) + object(40000, five);
  for (const std::string& rest : {std::string(), std::string(8, '\0'), free_space(16), free_space(4096)}) {
    const auto path = write(collection(all + rest));
    EXPECT_EQ(read(path, 8, 7), eight);
    EXPECT_EQ(read(path, 0, 2), empty);
    EXPECT_EQ(read(path, 5, 40000), five);
  }
  // At the end of the file; and with HDF5's part beginning later in the file.
  const auto path = write(collection(all), 0);
  EXPECT_EQ(read(path, 5, 40000), five);
  EXPECT_EQ(GlobalHeaps(path, 16).read({8, kAt - 16, 7}, "title"), eight);
}

TEST_F(GlobalHeapTest, NoAddressIsNoText) {
  EXPECT_EQ(GlobalHeaps(file("none.bin")).read({0, 0, 0}, "title"), "");
}

TEST_F(GlobalHeapTest, DamagedCollectionsAreRefusedWithTheirOffset) {
  const std::string a = object(1, "twelve bytes"), b = object(2, "more");
  const std::uint64_t whole = 16 + a.size() + b.size();
  struct Case {
    const char* what;
    std::string bytes, message;
  };
  const std::vector<Case> cases = {
      {"signature", "GC0L" + collection(a + b).substr(4), "is none"},
      {"version", "GCOL\2" + collection(a + b).substr(5), "is none"},
      {"zeroed", std::string(512, '\0'), "is none"},
      {"no size", collection(a + b, 0), "size of 0 bytes"},
      {"smaller than its header", collection(a + b, 15), "size of 15 bytes"},
      {"no object", collection(a + b, 16), "has no object 1"},
      {"behind the file", collection(a + b, whole + 101), "size of " + std::to_string(whole + 101)},
      {"as large as can be", collection(a + b, ~std::uint64_t{0}), "size of 18446744073709551615"},
      {"cut in an object", collection(a + b, whole - 1), "no room for its object 2 of 4 bytes"},
      {"runs on", collection(a + b, whole + 16), "no room for its object 24929 "},
      {"zeroed objects", collection(std::string(512, '\0')), "free space of 0 bytes"},
      {"free space too short", collection(a + object(0, 24, std::string(48, '\0'))),
       "free space of 24 bytes"},
      {"free space too long", collection(a + object(0, 65, std::string(48, '\0'))), "free space of 65 bytes"},
      {"free space amid", collection(a + free_space(32) + b), "free space of 32 bytes"},
      {"object too long", collection(a + object(2, 9, "12345678")), "no room for its object 2 of 9 bytes"},
      {"size that wraps", collection(a + object(2, ~std::uint64_t{0} - 15, "12345678")),
       "no room for its object 2 of 18446744073709551600 bytes"},
      {"padding that wraps", collection(a + object(2, ~std::uint64_t{0}, "12345678")),
       "no room for its object 2 of 18446744073709551615 bytes"},
      {"same index", collection(a + object(1, "more")), "two objects 1"}};
  for (const Case& c : cases) {
    const auto path = write(c.bytes);
    const std::string message = store_error([&] { (void)read(path, 12, 1); });
    EXPECT_TRUE(contains(message, "title is damaged: the global heap collection at offset 24 of the file"))
        << c.what << ": " << message;
    EXPECT_TRUE(contains(message, c.message)) << c.what << ": " << message;
  }
}

TEST_F(GlobalHeapTest, ReferencesToNoObjectAreRefused) {
  const auto path = write(collection(object(1, "twelve bytes") + free_space(32)));
  ASSERT_EQ(read(path, 12, 1), "twelve bytes");
  const std::vector<HeapReference> bad = {
      {11, kAt, 1},       {13, kAt, 1}, {12, kAt, 2},     {16, kAt, 0},       {32, kAt, 0},
      {12, kAt, 65537},   {12, 1, 1},   {12, kAt + 8, 1}, {12, 1U << 20U, 1}, {12, ~std::uint64_t{0}, 1},
      {1U << 31U, kAt, 1}};
  for (const HeapReference& reference : bad) {
    const std::string message = store_error([&] { (void)GlobalHeaps(path).read(reference, "title"); });
    EXPECT_TRUE(contains(message, "title is damaged: ")) << message;
  }
}

// HDF5 does not look at them; a collection with others is read all the same, and checked all the same.
TEST_F(GlobalHeapTest, ReservedBytesAreFree) {
  std::string bytes = collection(object(1, "twelve bytes"));
  bytes.replace(5, 3, "xyz");
  EXPECT_EQ(read(write(bytes), 12, 1), "twelve bytes");
}

}  // namespace
}  // namespace shardscape::results
