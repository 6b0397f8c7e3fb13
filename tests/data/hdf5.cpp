// SPDX-License-Identifier: Apache-2.0
// Files that h5py has written (tests/golden/hdf5_images.py), and our own.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "data/dataset.h"
#include "data/global_heap.h"
#include "data/hdf5_fields.h"
#include "data/hdf5_images.h"
#include "data/image_writer.h"
#include "io/hdf5/read_hdf5.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using Bytes = std::vector<uint8_t>;

fs::path file_of_h5py(const std::string& name) { return fs::path(WEFT_GOLDEN) / "hdf5" / name; }

Bytes encoded(const EncodedDataset& set, int64_t index) {
  Bytes buffer;
  const auto bytes = set.encoded(index, buffer);
  return {bytes.begin(), bytes.end()};
}

/// A golden image with zeros after its end, as hdf5_images.py wrote them.
Bytes padded(const std::string& name, size_t more = 0) {
  Bytes bytes = read_file(golden(name));
  bytes.resize(bytes.size() + more);
  return bytes;
}

TEST(Hdf5Images, ReadsTheLayoutOfJscAsH5pyWritesIt) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto train = hdf5_images(file_of_h5py("jsc.h5"), "train");
  ASSERT_EQ(train->size(), 4);
  EXPECT_EQ(train->classes(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(encoded(*train, 0), padded("baseline.jpg"));
  EXPECT_EQ(encoded(*train, 1), padded("progressive.jpg", 6000));
  EXPECT_EQ(encoded(*train, 2), padded("grey.jpg"));
  EXPECT_EQ(encoded(*train, 3), padded("rgb.png", 3));
  const int64_t labels[] = {0, 2, 1, 2};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(train->label(i), labels[i]);
  const auto val = hdf5_images(file_of_h5py("jsc.h5"), "val");
  EXPECT_EQ(val->classes(), train->classes());  // although no image of it has label 2
  EXPECT_EQ(encoded(*val, 0), padded("chroma420.JPEG"));
  EXPECT_EQ(open_dataset("hdf5:" + file_of_h5py("jsc.h5").string(), Split::val)->size(), 2);
  EXPECT_THAT(error_text([&] { train->get(4); }), HasSubstr("expected an index below 4, got 4"));
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  EXPECT_EQ(train->get(2).pixels, decode(read_file(golden("grey.jpg")), "").pixels);
  EXPECT_EQ(train->get(1).label, 2);
}

TEST(Hdf5Images, ReadsChunksOtherIntegersNamedClassesAndTest) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto train = hdf5_images(file_of_h5py("chunked.h5"), "train");
  ASSERT_EQ(train->size(), 3);
  EXPECT_EQ(train->classes(), (std::vector<std::string>{"ants", "bees"}));
  EXPECT_EQ(encoded(*train, 2), padded("grey.jpg"));
  EXPECT_EQ(train->label(1), 1);
  const std::string set = "hdf5:" + file_of_h5py("chunked.h5").string();
  EXPECT_EQ(open_dataset(set, Split::evaluation)->size(), 2);  // the part is called test
  EXPECT_THAT(error_text([&] { open_dataset(set, Split::val); }), HasSubstr("got train, test. test is for the end"));
}

// tests/golden/hdf5_of_others.py
TEST(Hdf5Images, NamesOfClassesAreTextsOfAnyLength) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto classes = [](const char* name) { return hdf5_images(file_of_h5py(name), "train")->classes(); };
  EXPECT_EQ(classes("names_utf8.h5"), (std::vector<std::string>{"ants", "bees é"}));
  for (const char* name : {"names_ascii.h5", "names_objects.h5", "names_dataset.h5"})
    EXPECT_EQ(classes(name), (std::vector<std::string>{"ants", "bees"})) << name;
  EXPECT_THAT(error_text([&] { classes("names_numbers.h5"); }),
              HasSubstr("attribute 'classes': expected texts, got something else"));
}

TEST(Hdf5Images, LabelsOfAMissingFilterAreRefusedWithACure) {
  WEFT_NEED_PART(HDF5, "HDF5");
  EXPECT_THAT(
      error_text([] { hdf5_images(file_of_h5py("lzf_targets.h5"), "train"); }),
      HasSubstr("train/targets: packed by lzf (filter 32000), which this libhdf5 does not have. Name the folder of "
                "its plugin in HDF5_PLUGIN_PATH (hdf5plugin of PyPI has many), or write it again with "
                "compression='gzip'"));
}

TEST(Hdf5Images, SaysWhatItCannotUse) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto refusal = [](const char* part) {
    return error_text([&] { hdf5_images(file_of_h5py("wrong.h5"), part); });
  };
  EXPECT_THAT(refusal("compressed"), HasSubstr("expected them stored without compression"));
  for (const char* part : {"floats", "fixed"})
    EXPECT_THAT(refusal(part), HasSubstr("images: expected variable-length sequences of bytes (u8)")) << part;
  EXPECT_THAT(refusal("square"), HasSubstr("square/images: expected one dimension"));
  EXPECT_THAT(refusal("no_images"), HasSubstr("expected the datasets images and targets, got no images"));
  EXPECT_THAT(refusal("not_written"), HasSubstr("got none: nothing has been written"));
  EXPECT_THAT(refusal("few_targets"), HasSubstr("expected"));
  EXPECT_THAT(refusal("negative_target"), HasSubstr("got -1 for image 1"));
  EXPECT_THAT(refusal("no_group"), HasSubstr("expected a group 'no_group' with images and targets, got none"));
  EXPECT_THAT(refusal("train"), HasSubstr("expected a group 'train'"));
  const auto one = hdf5_images(file_of_h5py("wrong.h5"), "one_empty");
  EXPECT_EQ(encoded(*one, 0), padded("chroma420.JPEG"));
  EXPECT_THAT(error_text([&] { encoded(*one, 1); }), HasSubstr("one_empty image 1: expected an image, got 0 bytes"));
  EXPECT_THAT(error_text([&] { hdf5_images(file_of_h5py("user_block.h5"), "train"); }),
              HasSubstr("no user block, got 8, 8 and 512 bytes"));
  EXPECT_THAT(error_text([&] { hdf5_images(golden("rgb.png"), "train"); }), HasSubstr("expected an HDF5 file, got"));
  EXPECT_THAT(error_text([&] { hdf5_images("/none.h5", "train"); }), HasSubstr("No such file"));
}

TEST(Hdf5, DatasetsAreTensors) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto read = [](const std::string& name) { return read_hdf5(file_of_h5py("datasets.h5"), name); };
  for (const auto& [name, dtype] : std::vector<std::pair<std::string, DType>>{{"f2", DType::f16},
                                                                              {"f4", DType::f32},
                                                                              {"f8", DType::f64},
                                                                              {"i1", DType::i32},
                                                                              {"i2", DType::i32},
                                                                              {"i4", DType::i32},
                                                                              {"i8", DType::i64},
                                                                              {"u1", DType::u8},
                                                                              {"u2", DType::i32},
                                                                              {"u4", DType::i64},
                                                                              {"big_f4", DType::f32},
                                                                              {"big_i2", DType::i32}}) {
    const Tensor x = read("kinds/" + name);
    EXPECT_EQ(x.dtype(), dtype) << name;
    EXPECT_EQ(x.sizes(), (Shape{2, 3})) << name;
    EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 100})) << name;
  }
  EXPECT_EQ(read("edges/i1").item(), -128);
  EXPECT_EQ(read("edges/u2").item(), 65535);
  EXPECT_EQ(read("edges/u4").item(), 4294967295);
  const Tensor packed = read("/packed");
  EXPECT_EQ(packed.sizes(), (Shape{5, 6, 7}));
  const std::vector<double> values = packed.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<double>(i) / 8);
  EXPECT_EQ(read("scalar").sizes(), Shape{});
  EXPECT_EQ(read("scalar").item(), 1.5);
  EXPECT_EQ(read("none").sizes(), (Shape{0, 3}));
  EXPECT_EQ(read("eight").dim(), 8);
}

// tests/golden/hdf5_of_others.py: h5py writes truths as an enum of i8.
TEST(Hdf5, TruthsAreBooleans) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto read = [](const std::string& name) { return read_hdf5(file_of_h5py("truths.h5"), name); };
  const Tensor mask = read("mask");
  EXPECT_EQ(mask.dtype(), DType::boolean);
  EXPECT_EQ(mask.sizes(), (Shape{2, 3}));
  EXPECT_EQ(mask.to_vector<double>(), (std::vector<double>{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(read("one").item(), 1);
  EXPECT_EQ(read("none").sizes(), (Shape{0, 3}));
  EXPECT_THAT(error_text([&] { read("damaged"); }),
              HasSubstr("dataset 'damaged': expected FALSE (0) or TRUE (1), got 5"));
  for (const char* name : {"colors", "swapped", "wide", "three"})
    EXPECT_THAT(error_text([&] { read(name); }), HasSubstr("expected booleans, floats of 16, 32 or 64 bits")) << name;
}

TEST(Hdf5, WhatIsNoTensorIsRefused) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const auto refusal = [](const fs::path& path, const std::string& name) {
    return error_text([&] { read_hdf5(path, name); });
  };
  const fs::path file = file_of_h5py("datasets.h5");
  EXPECT_THAT(refusal("/none.h5", "x"), HasSubstr("hdf5: /none.h5: expected to open it, got 'No such file"));
  EXPECT_THAT(refusal(golden("rgb.png"), "x"), HasSubstr("expected an HDF5 file, got"));
  EXPECT_THAT(refusal(file, "kinds/f3"), HasSubstr("expected a dataset 'kinds/f3', got none. Did you mean 'kinds/f"));
  EXPECT_THAT(refusal(file, "pakced"), HasSubstr("expected a dataset 'pakced', got none. Did you mean 'packed'?"));
  for (const std::string name : {"edges", "/edges", "edges/"})
    EXPECT_THAT(refusal(file, name), HasSubstr(str("expected a dataset '", name, "', got a group. It has ", name,
                                                   name.ends_with('/') ? "" : "/", "i1, ")))
        << name;
  EXPECT_THAT(refusal(file, "/"), HasSubstr("got a group. It has /brain, "));
  EXPECT_THAT(refusal(file_of_h5py("keras.h5"), "model_weights"), HasSubstr("got a group. It has no datasets"));
  EXPECT_THAT(error_text([&] { open_fields(file_of_h5py("truths.h5")); }), HasSubstr("in this file: it is a group"));
  for (const char* name : {"text", "kinds/u8", "brain"})
    EXPECT_THAT(refusal(file, name),
                HasSubstr(str("dataset '", name, "': expected booleans, floats of 16, 32 or 64 bits")));
  EXPECT_THAT(refusal(file, "nine"), HasSubstr("expected at most 8 dimensions, got 9"));
  EXPECT_THAT(refusal(file, "empty"), HasSubstr("dataset 'empty': expected numbers, got an empty dataset"));
  EXPECT_THAT(refusal(file, "lzf"), HasSubstr("dataset 'lzf': packed by lzf (filter 32000)"));
  EXPECT_THAT(refusal(file_of_h5py("fields_dangling.h5"), "fields"),
              HasSubstr("expected a dataset 'fields', got none: it is a link that leads nowhere"));
}

// Links to another file and values in one: here a named pipe, which nobody writes.
TEST(Hdf5Images, NothingLiesInAnotherFile) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const TemporaryFolder folder;
  write_file(folder / "elsewhere.h5", read_file(file_of_h5py("elsewhere.h5")));
  ASSERT_EQ(::mkfifo((folder / "other").c_str(), 0600), 0);
  ::alarm(60);
  const auto refusal = [&](const char* part) {
    return error_text([&] { hdf5_images(folder / "elsewhere.h5", part); });
  };
  EXPECT_THAT(refusal("group"), HasSubstr("expected a group 'group'"));
  EXPECT_THAT(refusal("dataset"), HasSubstr("got no targets in this file"));
  EXPECT_THAT(refusal("values"), HasSubstr("got no targets in this file"));
  EXPECT_THAT(error_text([&] { open_fields(folder / "elsewhere.h5"); }), HasSubstr("got none in this file"));
  ::alarm(0);
}

// Before the values are read, which would take 34 GB.
TEST(Hdf5Images, LabelsAreAsManyAsTheImages) {
  WEFT_NEED_PART(HDF5, "HDF5");
  EXPECT_THAT(error_text([] { hdf5_images(file_of_h5py("many_targets.h5"), "train"); }),
              HasSubstr("train: expected as many targets as images, got 4294967296 and 2"));
}

TEST(Hdf5Images, NoticesAFileThatWasCutShort) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const TemporaryFolder folder;
  const Bytes whole = read_file(file_of_h5py("jsc.h5"));
  for (size_t size = 600; size < whole.size(); size += 900) {
    write_file(folder / "cut.h5", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_THAT(error_text([&] {
                  const auto set = hdf5_images(folder / "cut.h5", "train");
                  for (int64_t i = 0; i < set->size(); ++i) encoded(*set, i);
                }),
                HasSubstr("cut short"))
        << size;
  }
}

TEST(Hdf5Writer, GivesBackWhatWasWritten) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const TemporaryFolder folder;
  std::vector<Bytes> images;
  for (const size_t size : {1, 7, 8, 100, 4000, 4064, 4065, 5000, 200000, 3}) images.push_back(random_bytes(size));
  const auto writer = hdf5_writer(folder / "a.h5", {"ant", "bumblebee"});
  for (const char* part : {"train", "val"}) {
    writer->begin_part(part, static_cast<int64_t>(images.size()));
    for (size_t i = 0; i < images.size(); ++i) writer->add(images[i], static_cast<int64_t>(i % 2));
  }
  EXPECT_FALSE(fs::exists(folder / "a.h5"));
  writer->commit();
  for (const char* part : {"train", "val"}) {
    const auto set = hdf5_images(folder / "a.h5", part);
    EXPECT_EQ(set->classes(), (std::vector<std::string>{"ant", "bumblebee"}));
    ASSERT_EQ(set->size(), static_cast<int64_t>(images.size()));
    for (int64_t i = 0; i < set->size(); ++i) {
      EXPECT_EQ(encoded(*set, i), images[i]);
      EXPECT_EQ(set->label(i), i % 2);
    }
  }
}

TEST(Hdf5Images, PartsHaveTheNamesThatPeopleGive) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const TemporaryFolder folder;
  const auto write = [&](const std::vector<const char*>& groups) {
    const auto writer = hdf5_writer(folder / "a.h5", {"a", "b", "c"});
    for (int64_t label = 0; const char* group : groups) {
      writer->begin_part(group, 1);
      writer->add(random_bytes(9), label++);
    }
    writer->commit();
  };
  write({"Train", "valid", "testing"});
  EXPECT_EQ(hdf5_parts(folder / "a.h5"), (std::vector<std::string>{"train", "val", "test"}));
  EXPECT_EQ(hdf5_images(folder / "a.h5", "val")->label(0), 1);
  write({"train", "valid", "dev"});
  EXPECT_THAT(error_text([&] { hdf5_parts(folder / "a.h5"); }),
              HasSubstr("expected one group for val, got valid, dev. Rename one of them"));
}

TEST(Hdf5Writer, AFullDiskLeavesTheOldFile) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const TemporaryFolder folder;
  write_file(folder / "a.h5", {1, 2, 3});
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{20000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = error_text([&] {
    const auto writer = hdf5_writer(folder / "a.h5", {"a"});
    writer->begin_part("train", 9);
    for (int i = 0; i < 9; ++i) writer->add(random_bytes(5000), 0);
    writer->commit();
  });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_THAT(text, HasSubstr("File too large"));
  EXPECT_EQ(read_file(folder / "a.h5"), (Bytes{1, 2, 3}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(Hdf5Writer, HasLabelsOf16Bits) {
  WEFT_NEED_PART(HDF5, "HDF5");
  const TemporaryFolder folder;
  std::vector<std::string> classes;
  for (int c = 0; c <= 1 << 15; ++c) classes.push_back(std::to_string(c));
  EXPECT_THAT(error_text([&] { hdf5_writer(folder / "a.h5", classes); }),
              HasSubstr("at most 32768 classes, got 32769"));
}

TEST(Hdf5Parts, AreAnErrorWithACureWithoutHdf5) {
  if (WEFT_HAVE_HDF5) GTEST_SKIP() << "this build has HDF5";
  EXPECT_THAT(error_text([] { hdf5_images("a.h5", "train"); }), HasSubstr("apt-get install libhdf5-dev"));
  EXPECT_THAT(error_text([] { hdf5_writer("a.h5", {"a"}); }), HasSubstr("apt-get install libhdf5-dev"));
}

// The heap by itself: two objects of 3 and 5 bytes, numbered 7 and 9, in a collection of 96 bytes at byte 10.
Bytes heap() {
  Bytes file(10 + 96);
  std::memcpy(&file[10], "GCOL\1\0\0\0\x60", 9);
  std::memcpy(&file[26], "\7\0\1\0\0\0\0\0\3\0\0\0\0\0\0\0abc", 19);
  std::memcpy(&file[50], "\x09\0\1\0\0\0\0\0\5\0\0\0\0\0\0\0fghij", 21);
  std::memcpy(&file[74], "\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0", 16);
  return file;
}

std::string heap_text(const Bytes& file, HeapReference reference) {
  const TemporaryFolder folder;
  write_file(folder / "heap", file);
  const FileReader reader(folder / "heap", "hdf5");
  Bytes buffer;
  try {
    const auto bytes = read_heap_object(reader, reference, "train", 4, buffer);
    return {bytes.begin(), bytes.end()};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Hdf5Heap, FindsObjectsAndRefusesDamage) {
  const uint8_t stored[16] = {3, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0};
  const HeapReference first = parse_heap_reference(stored), second{5, 9, 10};
  EXPECT_EQ(heap_text(heap(), first), "abc");
  EXPECT_EQ(heap_text(heap(), second), "fghij");
  EXPECT_THAT(heap_text(heap(), {3, 8, 10}),
              HasSubstr("train image 4: expected object 8 in the global heap at byte 10"));
  EXPECT_THAT(heap_text(heap(), {3, 0, 10}), HasSubstr("expected object 0"));
  EXPECT_THAT(heap_text(heap(), {4, 7, 10}), HasSubstr("expected an object of 4 bytes in the global heap, got 3"));
  EXPECT_THAT(heap_text(heap(), {0, 7, 10}), HasSubstr("expected an image, got 0 bytes"));
  EXPECT_THAT(heap_text(heap(), {3, 7, 11}), HasSubstr("expected a global heap at byte 11, got something else"));
  for (const uint64_t far : {uint64_t{80}, uint64_t{106}, uint64_t{1} << 40, ~uint64_t{0}})
    EXPECT_THAT(heap_text(heap(), {3, 7, far}), HasSubstr("before the file's end, byte 106")) << far;
  const auto with = [&](size_t at, uint8_t value, HeapReference reference) {
    Bytes file = heap();
    file[at] = value;
    return heap_text(file, reference);
  };
  EXPECT_THAT(with(18, 97, first), HasSubstr("expected a global heap of at most 96 bytes, got 97"));
  EXPECT_THAT(with(18, 31, first), HasSubstr("expected a global heap of at most 96 bytes, got 31"));
  EXPECT_THAT(with(18, 33, first), HasSubstr("expected an object within its global heap"));
  EXPECT_THAT(with(25, 1, first), HasSubstr("expected a global heap of at most 96 bytes"));
  EXPECT_THAT(with(34, 200, second), HasSubstr("expected object 9"));  // the first object reaches beyond the end
  EXPECT_THAT(with(41, 255, second), HasSubstr("expected object 9"));  // off by 2^56 bytes
  EXPECT_THAT(with(26, 0, second), HasSubstr("expected object 9"));    // free space before it
  EXPECT_THAT(with(14, 2, first), HasSubstr("got something else"));    // another version
}

}  // namespace
}  // namespace weft::data::testing
