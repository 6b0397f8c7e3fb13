// SPDX-License-Identifier: Apache-2.0
#include "data/cifar.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/fixture.h"
#include "tests/data/python2_pickle.h"

namespace weft::data::testing {
namespace {

constexpr int64_t kRecord10 = 3073;
constexpr int64_t kRecord100 = 3074;

std::vector<uint8_t> cifar10_bytes(int64_t records) {
  std::vector<uint8_t> bytes = random_bytes(records * kRecord10);
  for (int64_t i = 0; i < records; ++i) bytes[i * kRecord10] = static_cast<uint8_t>(i * 7 % 10);
  return bytes;
}

void expect_record(const Image& image, const uint8_t* planes) {
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t p = 0; p < 1024; ++p) ASSERT_EQ(image.pixels[3 * p + c], planes[1024 * c + p]) << c << " " << p;
}

TEST(Cifar10, ReadsPixelsAndLabelsOfEveryBatchThatIsThere) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> second = cifar10_bytes(3), fifth = cifar10_bytes(2);
  write_file(folder / "data_batch_2.bin", second);
  write_file(folder / "data_batch_5.bin", fifth);
  const auto set = cifar10(folder.path(), Split::train);
  ASSERT_EQ(set->size(), 5);
  ASSERT_EQ(set->classes().size(), 10u);
  EXPECT_EQ(set->classes()[3], "cat");
  for (int64_t i = 0; i < 5; ++i) {
    const uint8_t* record = i < 3 ? &second[i * kRecord10] : &fifth[(i - 3) * kRecord10];
    EXPECT_EQ(set->get(i).label, record[0]);
    expect_record(set->get(i), record + 1);
    EXPECT_EQ(set->storage()->labels[i], record[0]);
  }
  EXPECT_THAT(set->origin(4), HasSubstr("data_batch_5.bin record 1"));
  EXPECT_THAT(set->describe(), HasSubstr("cifar10 train: 5 images 32x32x3, 10 classes, without data_batch_1.bin, "
                                         "data_batch_3.bin, data_batch_4.bin, not found"));
}

TEST(Cifar10, ReadsTheTestPartAloneWithAnyNumberOfRecords) {
  const TemporaryFolder folder;
  write_file(folder / "test_batch.bin", cifar10_bytes(7));
  EXPECT_EQ(cifar10(folder.path(), Split::val)->size(), 7);
  const std::string text = error_text([&] { cifar10(folder.path(), Split::train); });
  EXPECT_THAT(text, HasSubstr("expected at least one of data_batch_1.bin, data_batch_2.bin"));
  EXPECT_THAT(text, HasSubstr("none of them"));
}

TEST(Cifar10, LooksIntoTheArchivesFolderAndReadsItsNames) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "cifar-10-batches-bin");
  write_file(folder.path() / "cifar-10-batches-bin" / "test_batch.bin", cifar10_bytes(1));
  const std::string names = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n";
  write_file(folder.path() / "cifar-10-batches-bin" / "batches.meta.txt", {names.begin(), names.end()});
  EXPECT_EQ(cifar10(folder.path(), Split::val)->classes()[9], "j");
}

TEST(Cifar10, SaysWhatAWebPageIs) {
  const TemporaryFolder folder;
  const std::string page = "\n<html><body>404</body></html>";
  for (const auto& [name, wanted] :
       {std::pair{"test_batch.bin", "records of 3073 bytes"}, {"test_batch", "a pickled dict of arrays and lists"}}) {
    write_file(folder / name, {page.begin(), page.end()});
    EXPECT_THAT(
        error_text([&] { cifar10(folder.path(), Split::val); }),
        HasSubstr(str((folder / name).string(), ": it is a web page (HTML), expected ", wanted, ". Its server")));
    fs::remove(folder / name);
  }
}

TEST(Cifar10, ANamedPipeOfNamesIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "test_batch.bin", cifar10_bytes(1));
  ASSERT_EQ(::mkfifo((folder / "batches.meta.txt").c_str(), 0600), 0);
  ::alarm(60);  // reading it would wait for a writer for ever
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }),
              HasSubstr("batches.meta.txt: expected a file, got something else"));
  ::alarm(0);
}

TEST(Cifar10, WritingIsTheInverseOfReading) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> bytes = cifar10_bytes(4);
  write_file(folder / "test_batch.bin", bytes);
  const auto set = cifar10(folder.path(), Split::val);
  EXPECT_EQ(cifar10_records(set->storage()->pixels, set->storage()->labels, 4), bytes);
}

TEST(Cifar10, RefusesBrokenFiles) {
  const TemporaryFolder folder;
  std::vector<uint8_t> bytes = cifar10_bytes(3);
  bytes.pop_back();
  write_file(folder / "test_batch.bin", bytes);
  const std::string truncated = error_text([&] { cifar10(folder.path(), Split::val); });
  EXPECT_THAT(truncated, HasSubstr("whole number of records of 3073 bytes"));
  EXPECT_THAT(truncated, HasSubstr("got 9218 bytes (2 records and 3072 bytes)"));
  bytes.resize(3 * kRecord10 + 1);
  write_file(folder / "test_batch.bin", bytes);
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }), HasSubstr("3 records and 1 bytes"));
  write_file(folder / "test_batch.bin", {});
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }), HasSubstr("got 0 bytes"));
  bytes = cifar10_bytes(3);
  bytes[2 * kRecord10] = 10;
  write_file(folder / "test_batch.bin", bytes);
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }), HasSubstr("got 10 in"));
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }), HasSubstr("record 2"));
  EXPECT_THAT(error_text([] { cifar10("/nowhere", Split::val); }), HasSubstr("no such folder"));
}

TEST(Cifar10, SaysHowToUnpack) {
  const TemporaryFolder folder;
  write_file(folder / "test_batch.bin.xz", random_bytes(9));
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }),
              HasSubstr("Unpack test_batch.bin.xz with xz -dk"));
}

TEST(Cifar100, ReadsFineAndCoarseLabelsAndNames) {
  const TemporaryFolder folder;
  std::vector<uint8_t> bytes = random_bytes(2 * kRecord100);
  bytes[0] = 19, bytes[1] = 99, bytes[kRecord100] = 3, bytes[kRecord100 + 1] = 42;
  write_file(folder / "test.bin", bytes);
  const auto fine = cifar100(folder.path(), Split::val);
  EXPECT_EQ(fine->get(0).label, 99);
  EXPECT_EQ(fine->get(1).label, 42);
  EXPECT_EQ(fine->classes().size(), 100u);
  expect_record(fine->get(1), &bytes[kRecord100 + 2]);
  const auto coarse = cifar100(folder.path(), Split::val, CifarLabels::coarse);
  EXPECT_EQ(coarse->get(0).label, 19);
  EXPECT_EQ(coarse->classes().size(), 20u);

  const std::string names = "one\ntwo\n";
  write_file(folder / "fine_label_names.txt", {names.begin(), names.end()});
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::val); }), HasSubstr("expected 100 names in"));
  bytes[1] = 100;
  write_file(folder / "test.bin", bytes);
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::val); }), HasSubstr("100"));
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::train); }), HasSubstr("train.bin"));
}

TEST(Cifar100, ReadsThePythonVersionThatTorchvisionKeeps) {
  const TemporaryFolder folder;
  const fs::path archive = folder / "cifar-100-python";
  fs::create_directories(archive);
  fs::create_directories(folder / "train");  // a folder is no file of records
  const std::vector<uint8_t> planes = random_bytes(3 * 3072);
  write_file(archive / "train", python_cifar(planes, {{"fine_labels", {99, 0, 42}}, {"coarse_labels", {19, 3, 7}}}));
  Python2Pickle meta;
  std::vector<std::string> fine_names, coarse_names;
  for (int i = 0; i < 100; ++i) fine_names.push_back("fine" + std::to_string(i));
  for (int i = 0; i < 20; ++i) coarse_names.push_back("coarse" + std::to_string(i));
  meta.op("}").put().op("(").text("fine_label_names").texts(fine_names).text("coarse_label_names").texts(coarse_names);
  write_file(archive / "meta", meta.op("u.").bytes);

  const auto fine = cifar100(folder.path(), Split::train);
  ASSERT_EQ(fine->size(), 3);
  EXPECT_EQ(fine->get(0).label, 99);
  EXPECT_EQ(fine->get(2).label, 42);
  EXPECT_EQ(fine->classes()[42], "fine42");
  for (int64_t i = 0; i < 3; ++i) expect_record(fine->get(i), &planes[static_cast<size_t>(i) * 3072]);
  EXPECT_THAT(fine->origin(1), HasSubstr("cifar-100-python/train record 1"));
  const auto coarse = cifar100(archive, Split::train, CifarLabels::coarse);  // the archive's own folder will do
  EXPECT_EQ(coarse->get(0).label, 19);
  EXPECT_EQ(coarse->classes()[7], "coarse7");
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::val); }),
              HasSubstr("expected at least one of test.bin in " + folder.path().string() +
                        " or in its cifar-100-binary, or the python version in its cifar-100-python, got none"));

  write_file(archive / "train", python_cifar(planes, {{"fine_labels", {99, 0, 100}}}));
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::train); }), HasSubstr("got 100 in"));
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::train, CifarLabels::coarse); }),
              HasSubstr("expected a key 'coarse_labels', got none"));
  write_file(archive / "train", python_cifar(random_bytes(3 * 3071), {{"fine_labels", {1, 2, 3}}}));
  EXPECT_THAT(error_text([&] { cifar100(folder.path(), Split::train); }), HasSubstr("got 3 of 3071 and 3 labels"));
}

TEST(Cifar10, SaysWhichLabelsAPythonFileHas) {
  const TemporaryFolder folder;
  write_file(folder / "test_batch", python_cifar(random_bytes(3072), {{"noisy_labels", {3}}}));
  EXPECT_THAT(error_text([&] { cifar10(folder.path(), Split::val); }),
              HasSubstr("expected a key 'labels', got none. There are: filenames, batch_label, noisy_labels, data"));
}

TEST(Cifar10, ReadsThePythonVersionBatchByBatch) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "cifar-10-batches-py");
  const std::vector<uint8_t> planes = random_bytes(2 * 3072);
  for (const char* batch : {"data_batch_1", "data_batch_4"})
    write_file(folder.path() / "cifar-10-batches-py" / batch, python_cifar(planes, {{"labels", {9, 4}}}));
  const auto set = cifar10(folder.path(), Split::train);
  ASSERT_EQ(set->size(), 4);
  EXPECT_EQ(set->get(2).label, 9);
  EXPECT_EQ(set->classes()[3], "cat");
  expect_record(set->get(3), &planes[3072]);
  EXPECT_THAT(set->origin(3), HasSubstr("data_batch_4 record 1"));
  // The binary version is taken where both are there.
  write_file(folder / "data_batch_2.bin", cifar10_bytes(3));
  EXPECT_EQ(cifar10(folder.path(), Split::train)->size(), 3);
}

}  // namespace
}  // namespace weft::data::testing
