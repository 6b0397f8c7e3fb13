// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstring>

#include "data/dataset.h"
#include "data/image_writer.h"
#include "data/packed_images.h"
#include "io/crc32c.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using Bytes = std::vector<uint8_t>;

/// train: two images and what is no image; val: one image.
void write_small(const fs::path& path) {
  const auto writer = packed_writer(path, {"ants", "bees"});
  writer->begin_part("train", 3);
  writer->add(read_file(golden("baseline.jpg")), 1);
  writer->add(read_file(golden("rgb.png")), 0);
  writer->add(Bytes{1, 2, 3}, 1);
  writer->begin_part("val", 1);
  writer->add(read_file(golden("grey.jpg")), 0);
  writer->commit();
}

template <class T>
void poke(Bytes& file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

template <class T>
T peek(const Bytes& file, size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

/// Both checksums made to fit what stands in the file.
void renew_checksums(Bytes& file) {
  const auto index = peek<uint64_t>(file, 24);
  poke(file, 40, crc32c(file.data() + index, file.size() - index));
  poke(file, 60, crc32c(file.data(), 60));
}

std::string refusal(const Bytes& file, const std::string& part = "train") {
  const TemporaryFolder folder;
  write_file(folder / "file.packed", file);
  return error_text([&] { packed_images(folder / "file.packed", part); });
}

TEST(Packed, GivesBackWhatWasWritten) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  WEFT_NEED_PART(SPNG, "libspng");
  const TemporaryFolder folder;
  write_small(folder / "small.packed");
  const auto set = packed_images(folder / "small.packed", "train");
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(set->classes(), (std::vector<std::string>{"ants", "bees"}));
  EXPECT_THAT(set->describe(), HasSubstr("train: 3 images of varying size, 2 classes"));
  const Image image = set->get(0), direct = decode(read_file(golden("baseline.jpg")), "");
  EXPECT_EQ(image.pixels, direct.pixels);
  EXPECT_EQ(image.label, 1);
  EXPECT_EQ(set->get(1).label, 0);
  Bytes buffer;
  EXPECT_EQ(set->encoded(0, buffer).size(), fs::file_size(golden("baseline.jpg")));
  const auto bytes = set->encoded(2, buffer);  // into a buffer that is longer
  EXPECT_EQ(Bytes(bytes.begin(), bytes.end()), (Bytes{1, 2, 3}));
  EXPECT_THAT(error_text([&] { set->get(2); }), HasSubstr("small.packed train image 2"));
  EXPECT_THAT(error_text([&] { set->get(3); }), HasSubstr("expected an index below 3, got 3"));
  EXPECT_EQ(packed_images(folder / "small.packed", "val")->get(0).label, 0);
  EXPECT_EQ(open_dataset("packed:" + (folder / "small.packed").string(), Split::val)->size(), 1);
}

TEST(Packed, TheLayoutIsThatOfTheHeader) {
  const TemporaryFolder folder;
  write_small(folder / "small.packed");
  const Bytes file = read_file(folder / "small.packed");
  EXPECT_EQ(std::string(file.begin(), file.begin() + 8), "WEFTPACK");
  EXPECT_EQ(peek<uint32_t>(file, 8), 1u);
  EXPECT_EQ(peek<uint64_t>(file, 16), file.size());
  const auto index = peek<uint64_t>(file, 24);
  EXPECT_EQ(index + peek<uint64_t>(file, 32), file.size());
  EXPECT_EQ(peek<uint32_t>(file, 40), crc32c(file.data() + index, file.size() - index));
  const Bytes first = read_file(golden("baseline.jpg"));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), file.begin() + 64));
  // classes 2; 4 "ants"; 4 "bees"; parts 2; 5 "train"; 3 images; the first image
  size_t at = index;
  EXPECT_EQ(peek<uint32_t>(file, at), 2u);
  at += 4 + 2 * (4 + 4);
  EXPECT_EQ(peek<uint32_t>(file, at), 2u);
  EXPECT_EQ(peek<uint32_t>(file, at + 4), 5u);
  at += 8 + 5;
  EXPECT_EQ(peek<uint64_t>(file, at), 3u);
  EXPECT_EQ(peek<uint64_t>(file, at + 8), 64u);
  EXPECT_EQ(peek<uint32_t>(file, at + 16), first.size());
  EXPECT_EQ(peek<uint32_t>(file, at + 20), crc32c(first.data(), first.size()));
  EXPECT_EQ(peek<uint32_t>(file, at + 24), 1u);
}

TEST(Packed, TestIsNotValButMayBeEvaluated) {
  const TemporaryFolder folder;
  const auto writer = packed_writer(folder / "a.packed", {"x"});
  writer->begin_part("test", 1);
  writer->add(Bytes{1}, 0);
  writer->commit();
  const std::string set = "packed:" + (folder / "a.packed").string();
  EXPECT_THAT(
      error_text([&] { open_dataset(set, Split::val); }),
      HasSubstr("a.packed: expected a part val (or valid, validation, dev), got test. test is for "
                "the end, not to choose the best epoch by. Move some images of each class from train to val, or "
                "rename test"));
  EXPECT_EQ(open_dataset(set, Split::evaluation)->size(), 1);
  EXPECT_THAT(error_text([&] { packed_images(folder / "a.packed", "train"); }),
              HasSubstr("expected a part 'train', got 'test'"));
}

TEST(Packed, NoticesADamagedImage) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  const TemporaryFolder folder;
  write_small(folder / "small.packed");
  Bytes file = read_file(folder / "small.packed");
  file[64 + 700] ^= 1;  // libjpeg would decode it all the same
  write_file(folder / "small.packed", file);
  const auto set = packed_images(folder / "small.packed", "train");
  EXPECT_THAT(error_text([&] { set->get(0); }), HasSubstr("train image 0 is damaged: its checksum does not fit"));
}

TEST(Packed, AnErrorIsOneLineWhateverAPartIsCalled) {
  const TemporaryFolder folder;
  const auto writer = packed_writer(folder / "a.packed", {"x"});
  writer->begin_part("a\nb", 1);
  writer->add(Bytes{1}, 0);
  writer->commit();
  Bytes file = read_file(folder / "a.packed");
  file[64] ^= 1;
  write_file(folder / "a.packed", file);
  const auto set = packed_images(folder / "a.packed", "a\nb");
  EXPECT_THAT(error_text([&] { set->get(0); }), HasSubstr(R"(a\x0ab image 0 is damaged)"));
  EXPECT_THAT(set->describe(), HasSubstr(R"(a\x0ab)"));
}

TEST(Packed, RefusesWhatIsNoWholePackedFile) {
  const TemporaryFolder folder;
  write_small(folder / "small.packed");
  const Bytes good = read_file(folder / "small.packed");
  EXPECT_THAT(refusal({}), HasSubstr("it is an empty file, expected a packed file (it begins with WEFTPACK)"));
  EXPECT_THAT(refusal({'W', 'E', 'F', 'T', 'P', 'A', 'C', 'K'}), HasSubstr("the header's checksum does not fit"));
  EXPECT_THAT(refusal(read_file(golden("rgb.png"))), HasSubstr("got another"));
  EXPECT_THAT(refusal(Bytes(good.begin(), good.end() - 1)), HasSubstr("Is it cut short?"));
  EXPECT_THAT(refusal(good, "test"), HasSubstr("expected a part 'test', got 'train', 'val'"));
  for (size_t at = 8; at < 64; ++at) {
    Bytes bad = good;
    bad[at] ^= 0x10;
    EXPECT_THAT(refusal(bad), HasSubstr("the header's checksum does not fit")) << at;
  }
  const auto index = peek<uint64_t>(good, 24);
  for (size_t at = index; at < good.size(); at += 5) {
    Bytes bad = good;
    bad[at] ^= 0x10;
    EXPECT_THAT(refusal(bad), HasSubstr("the index's checksum does not fit")) << at;
  }
  EXPECT_THAT(error_text([&] { packed_images(folder / "none", "train"); }), HasSubstr("No such file"));
  EXPECT_THAT(error_text([&] { packed_images(folder.path(), "train"); }), HasSubstr("expected a file"));
}

TEST(Packed, RefusesAnIndexThatContradictsItself) {
  const TemporaryFolder folder;
  write_small(folder / "small.packed");
  const Bytes good = read_file(folder / "small.packed");
  const auto index = peek<uint64_t>(good, 24);
  const size_t class_name = index + 8, parts = index + 20, part_name = parts + 8, count = part_name + 5;
  const auto with = [&](size_t at, auto value) {
    Bytes bad = good;
    poke(bad, at, value);
    renew_checksums(bad);
    return refusal(bad);
  };
  EXPECT_THAT(with(8, uint32_t{2}), HasSubstr("expected version 1, got 2, which a newer Weft has written"));
  EXPECT_THAT(with(index, uint32_t{0}), HasSubstr("expected 1 to 1048576 classes, got 0"));
  EXPECT_THAT(with(index, uint32_t{3}), HasSubstr("expected a name of 1 to 4096 bytes for a part"));
  EXPECT_THAT(with(index + 4, uint32_t{0}), HasSubstr("expected a name of 1 to 4096 bytes for a class, got 0"));
  EXPECT_THAT(with(index + 4, uint32_t{4000}), HasSubstr("the index ends within a class"));
  EXPECT_THAT(with(class_name, std::array{'b', 'e', 'e', 's'}),
              HasSubstr("expected each class once, got 'bees' twice"));
  EXPECT_THAT(with(parts, uint32_t{1}), HasSubstr("bytes follow the index"));
  EXPECT_THAT(with(parts, uint32_t{3}), HasSubstr("the index ends within a part"));
  EXPECT_THAT(with(count, uint64_t{1} << 60), HasSubstr("the index ends within part 'train'"));
  EXPECT_THAT(with(count + 8, uint64_t{0}), HasSubstr("expected an image between bytes 64 and"));
  EXPECT_THAT(with(count + 8, ~uint64_t{0}), HasSubstr("expected an image between bytes 64 and"));
  EXPECT_THAT(with(count + 16, ~uint32_t{0}), HasSubstr("got 4294967295 bytes at 64"));
  EXPECT_THAT(with(count + 16, uint32_t{0}), HasSubstr("got 0 bytes at 64"));
  EXPECT_THAT(with(count + 24, uint32_t{2}), HasSubstr("expected labels below 2, got 2"));
  EXPECT_THAT(with(24, uint64_t{1}), HasSubstr("expected an index up to the end"));
}

TEST(PackedWriter, HoldsItsCallerToWhatWasSaid) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.packed";
  EXPECT_THAT(error_text([&] { packed_writer(path, {}); }), HasSubstr("expected at least one class, got none"));
  EXPECT_THAT(error_text([&] { packed_writer(path, {"a", "a"}); }), HasSubstr("expected each class once, got 'a'"));
  EXPECT_THAT(error_text([&] { packed_writer(path, {""}); }), HasSubstr("expected classes with names, got ''"));
  EXPECT_THAT(error_text([&] { packed_writer(folder / "no/a", {"a"}); }), HasSubstr("expected an existing folder"));
  const auto writer = packed_writer(path, {"a", "b"});
  EXPECT_THAT(error_text([&] { writer->add(Bytes{1}, 0); }), HasSubstr("expected begin_part() before add()"));
  EXPECT_THAT(error_text([&] { writer->begin_part("a/b", 1); }), HasSubstr("without '/', got 'a/b'"));
  EXPECT_THAT(error_text([&] { writer->begin_part("a", 0); }), HasSubstr("expected at least one image in part 'a'"));
  writer->begin_part("train", 1);
  EXPECT_THAT(error_text([&] { writer->add({}, 0); }), HasSubstr("expected an image of 1 byte to 4 GiB"));
  EXPECT_THAT(error_text([&] { writer->add(Bytes{1}, 2); }), HasSubstr("expected labels 0 to 1, got 2"));
  EXPECT_THAT(error_text([&] { writer->commit(); }), HasSubstr("expected 1 images in part 'train', got 0"));
  writer->add(Bytes{1}, 0);
  EXPECT_THAT(error_text([&] { writer->add(Bytes{1}, 0); }), HasSubstr("got one more"));
  EXPECT_THAT(error_text([&] { writer->begin_part("train", 1); }), HasSubstr("expected each part once, got 'train'"));
  EXPECT_FALSE(fs::exists(path));
  writer->commit();
  EXPECT_EQ(packed_images(path, "train")->size(), 1);
}

TEST(PackedWriter, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_small(folder / "a.packed");
  const Bytes before = read_file(folder / "a.packed");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{1000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = error_text([&] { write_small(folder / "a.packed"); });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_THAT(text, HasSubstr("File too large"));
  EXPECT_THAT(text, HasSubstr("The old file is unchanged"));
  EXPECT_EQ(read_file(folder / "a.packed"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace weft::data::testing
