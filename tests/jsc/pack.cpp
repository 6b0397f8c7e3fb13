// SPDX-License-Identifier: Apache-2.0
// pack and load_bench as their users start them.
#include "tests/jsc/insects.h"

namespace weft::tests {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Outcome pack(const std::string& arguments) { return shell(PACK " " + arguments); }
Outcome load_bench(const std::string& arguments) {
  return shell("OMP_WAIT_POLICY=passive " LOAD_BENCH " " + arguments);
}

class Storage : public testing::TestWithParam<const char*> {};

TEST_P(Storage, IsPackedVerifiedAndLoadedLikeTheFolder) {
  WEFT_NEED(JPEG);
  const std::string type = GetParam(), kind = type == "h5" ? "hdf5" : "packed";
  if (type == "h5") WEFT_NEED(HDF5);
  const TemporaryFolder folder;
  const std::string root = make_insects(folder / "insects", true), file = folder / "insects." + type;
  const Outcome packed = pack("--dset_type " + type + " --data_root " + root + "/");
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  for (const char* line : {"train: 5 images", "val: 3 images", "test: 2 images", "verify train", "pack val"})
    EXPECT_THAT(packed.output, HasSubstr(line));
  EXPECT_THAT(packed.output, HasSubstr("wrote " + file + ", "));
  EXPECT_THAT(packed.output, ContainsRegex(kElapsed));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "."), fs::directory_iterator()), 2);

  // Training sees the same bits.
  const std::string train =
      " --epochs 1 --batch-size 2 --model resnet8 --image-size 16 --device cpu --lr 0.01 --workers 1";
  const Outcome from_folder = shell(TRAIN_IMAGE " --data folder:" + root + train + " --export " +
                                    (folder / "a.safetensors") + " --out " + (folder / "a"));
  const Outcome from_file = shell(TRAIN_IMAGE " --data " + kind + ":" + file + train + " --export " +
                                  (folder / "b.safetensors") + " --out " + (folder / "b"));
  ASSERT_EQ(from_folder.exit_code, 0) << from_folder.output;
  ASSERT_EQ(from_file.exit_code, 0) << from_file.output;
  EXPECT_THAT(from_file.output, HasSubstr("5 images of varying size, 2 classes"));
  EXPECT_EQ(read_text(folder / "a.safetensors"), read_text(folder / "b.safetensors"));

  const Outcome bench = load_bench("--dset_type " + type + " --data_root " + file + " --batch_size 2 --workers 1");
  ASSERT_EQ(bench.exit_code, 0) << bench.output;
  EXPECT_THAT(bench.output, HasSubstr(type == "h5" ? "Start loading with H5 file" : "Start loading with packed file"));
  EXPECT_THAT(bench.output, ContainsRegex("load  +[0-9]+ images/s  \\([0-9.]+ s\\)"));
  EXPECT_THAT(bench.output, ContainsRegex(kElapsed));
  // The folder that holds the file will do, and so will dashes.
  fs::remove_all(folder / "a"), fs::remove_all(folder / "b");
  const Outcome raw = load_bench("--dset-type " + type + " -d " + (folder / ".") + " --read-only --raw --epochs 3");
  ASSERT_EQ(raw.exit_code, 0) << raw.output;
  EXPECT_THAT(raw.output, ContainsRegex("read  +[0-9]+ images/s +[0-9.]+ MB/s"));
  EXPECT_THAT(raw.output, ContainsRegex("[0-9.]+ of the disk's cache"));
}

INSTANTIATE_TEST_SUITE_P(Files, Storage, testing::Values("h5", "packed"));

TEST(LoadBench, MeasuresAFolderAndItsPeers) {
  WEFT_NEED(JPEG);
  const TemporaryFolder folder;
  const std::string root = make_insects(folder / "insects");
  const Outcome loaded =
      load_bench("--dset_type fs --data_root " + root + " --batch_size 2048 --workers 2 --epochs 2 --shuffle");
  ASSERT_EQ(loaded.exit_code, 0) << loaded.output;
  EXPECT_THAT(loaded.output, HasSubstr("Start loading ILSVRC images"));
  const Outcome decoded = load_bench("--data_root " + root + " --part val --decode-only --raw --workers 0");
  ASSERT_EQ(decoded.exit_code, 0) << decoded.output;
  EXPECT_THAT(decoded.output, ContainsRegex("read and decode +[0-9]+ images/s  \\([0-9.]+ s\\)"));
  EXPECT_THAT(decoded.output, ContainsRegex("[0-9.]+ of libjpeg-turbo alone"));
  const Outcome read = load_bench("--data_root " + root + " --read_only --raw");
  ASSERT_EQ(read.exit_code, 0) << read.output;
  EXPECT_THAT(read.output, ContainsRegex("plain pread +[0-9]+ images/s"));
}

TEST(LoadBench, ReadsImageNetAsItIsUnpacked) {
  WEFT_NEED(JPEG);
  const TemporaryFolder folder;
  const fs::path images = folder / "ILSVRC/Data/CLS-LOC";
  place("baseline.jpg", images / "train/n01440764/n01440764_1.JPEG");
  place("grey.jpg", images / "train/n01443537/n01443537_7.JPEG");
  place("exif2.jpg", images / "val/ILSVRC2012_val_00000001.JPEG");
  const std::string val = "--dset_type fs --part val --data_root " + (folder / ".");
  EXPECT_EQ(load_bench("--data_root " + (folder / ".")).exit_code, 0);
  EXPECT_THAT(load_bench(val).output, HasSubstr("expected the labels of val in"));
  const std::string labels = folder / "ILSVRC2012_val_labels.json";
  write_text(labels, "[]");
  EXPECT_THAT(load_bench(val).output, HasSubstr("expected {\"FILE\": \"SYNSET\", …}"));
  write_text(labels, R"({"other.JPEG": "n01443537"})");
  EXPECT_THAT(load_bench(val).output, HasSubstr("expected the synset of ILSVRC2012_val_00000001.JPEG"));
  write_text(labels, R"({"ILSVRC2012_val_00000001.JPEG": "n9"})");
  EXPECT_THAT(load_bench(val).output, HasSubstr("expected only synsets of train in"));
  write_text(labels, R"({"ILSVRC2012_val_00000001.JPEG": "n01443537"})");
  const Outcome run = load_bench(val);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("imagenet val: 1 images of varying size, 2 classes"));
  const Outcome packed = pack("--dset_type packed --data_root " + (folder / ".") + " --out " + (folder / "i.packed"));
  EXPECT_EQ(packed.exit_code, 0) << packed.output;
  EXPECT_THAT(packed.output, HasSubstr("train: 2 images"));
}

TEST(Pack, LeavesOutHiddenFilesAndSaysWhatElse) {
  WEFT_NEED(JPEG);
  const TemporaryFolder folder;
  const fs::path root = make_insects(folder / "insects", true);
  for (const char* hidden : {"train/ants/.ipynb_checkpoints/a.jpg", "train/__MACOSX/a.jpg", "val/bees/._g.jpg"})
    place("baseline.jpg", root / hidden);
  place("baseline.jpg", root / "train/stray.jpg");
  write_text(root / "val/bees/notes.txt", "?");
  fs::rename(root / "val", root / "Valid");
  const std::string line = "--dset_type packed --data_root " + root.string();
  const auto expected = testing::AllOf(
      HasSubstr("train: 5 images of varying size, 2 classes; left out: 1 images beside the classes' folders, such as "),
      HasSubstr("val: 3 images of varying size, 2 classes; left out: 1 .txt\n"), HasSubstr("test: 2 images"));
  EXPECT_THAT(pack(line + " --dry_run").output, expected);
  EXPECT_THAT(pack(line).output, expected);
  place("baseline.jpg", folder / "._insects.packed");
  EXPECT_THAT(load_bench("--dset_type packed --part val --read_only --data_root " + (folder / ".")).output,
              HasSubstr("val: 3 images"));
}

/// One clear line, and this exit code.
TEST(Pack, SaysWhatItCannotUse) {
  const TemporaryFolder folder;
  expect_refusal(pack("--data_root " + (folder / "none")), 1, "pack: error: --data_root: expected a folder of images");
  expect_refusal(pack("--data_root " + (folder / ".")), 1, "expected train, val or test in");
  expect_refusal(pack("--dset_type arrow"), 2, "--dset_type: unknown value 'arrow'.");
  expect_refusal(pack("--dsettype h5"), 2, "unknown flag --dsettype. Did you mean --dset_type?");
  const std::string root = make_insects(folder / "insects");
  expect_refusal(pack("--dset_type packed --data_root " + root + " --out " + folder / "."), 1, "got the folder");
  place("grey.jpg", fs::path(root) / "val/wasps/1.jpg");
  const Outcome more = pack("--dset_type packed --data_root " + root);
  EXPECT_EQ(more.exit_code, 1);
  EXPECT_THAT(more.output, HasSubstr("got the new class 'wasps'"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "."), fs::directory_iterator()), 1);  // nothing left behind
  EXPECT_THAT(pack("--help").output, HasSubstr("layout of JSC's course"));
}

TEST(LoadBench, SaysWhatItCannotUse) {
  const TemporaryFolder folder;
  expect_refusal(load_bench("--data_root " + (folder / "none")), 1, "load_bench: error: --data_root: expected images");
  expect_refusal(load_bench("--dset_type h5 -d " + (folder / ".")), 1, "expected a file *.h5 in");
  write_text(folder / "a.h5", "x");
  write_text(folder / "b.h5", "y");
  expect_refusal(load_bench("--dset_type h5 -d " + (folder / ".")), 1, "got 2, such as");
  expect_refusal(load_bench("--dset_type packed -d " + (folder / "a.h5")), 1, "expected a packed file");
  expect_refusal(load_bench("--read_only --decode_only"), 2, "expected it without --decode_only");
  expect_refusal(load_bench("--batch_size 0"), 2, "--batch_size: expected a value at least 1");
  expect_refusal(shell("SLURM_CPUS_PER_TASK=many " LOAD_BENCH), 2, "SLURM_CPUS_PER_TASK: expected a whole number");
  EXPECT_THAT(load_bench("--help").output, HasSubstr("how the images are kept"));
}

}  // namespace
}  // namespace weft::tests
