// SPDX-License-Identifier: Apache-2.0
// train_image on a disk that fills up, and under a limit on the size of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "io/checkpoint.h"
#include "tests/train/temporary_folder.h"
#include "tests/train_image/program.h"

namespace weft::crash {
namespace {

using testing::HasSubstr;
using tests::Outcome;

const std::string kRun =
    std::string(TRAIN_IMAGE) +
    " --data random:32x8x8x3 --model resnet8 --batch-size 32 --schedule constant --lr 0.01 --workers 0 "
    "--device cpu --resume auto ";

class FullDisk : public testing::Test {
 protected:
  int64_t step() const { return load_checkpoint(folder / "run/checkpoint_last.safetensors").integer("step"); }
  Outcome run(const std::string& more, const std::string& before = "") const {
    return tests::shell(before + kRun + "--out " + (folder / "run").string() + " " + more);
  }
  test::TemporaryFolder folder;
};

TEST_F(FullDisk, TrainingEndsWithAnErrorAndGoesOnWhenThereIsSpace) {
  if (mount("weft", folder.path().c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "needs to mount a small disk, which takes root";
  EXPECT_EQ(run("--epochs 2").exit_code, 0);
  EXPECT_EQ(step(), 2);
  const auto free = std::filesystem::space(folder.path()).available;
  test::write_file(folder / "ballast", std::string(free - (128 << 10), 'x'));
  const Outcome full = run("--epochs 4");
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output,
              testing::ContainsRegex(
                  "train_image: error: checkpoint: expected to write [^ ]*/checkpoint_last.safetensors, got 'No "
                  "space left on device'. The old file is unchanged. Free some space \\([0-9.]* "
                  "[KM]iB are left\\) or write elsewhere"));
  EXPECT_EQ(step(), 2) << "the last whole checkpoint is still there";
  std::filesystem::remove(folder / "ballast");
  const Outcome again = run("--epochs 4");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(step(), 4);
  EXPECT_EQ(umount(folder.path().c_str()), 0);
}

TEST_F(FullDisk, ALimitOnFileSizesIsAnErrorToo) {
  EXPECT_EQ(run("--epochs 2").exit_code, 0);
  const Outcome limited = run("--epochs 4", "ulimit -f 200; ");
  EXPECT_EQ(limited.exit_code, 1) << limited.output;
  EXPECT_THAT(limited.output,
              HasSubstr("checkpoint_last.safetensors, got 'File too large'. The old file is unchanged. Raise the "
                        "limit on file sizes (ulimit -f)."));
  EXPECT_EQ(step(), 2);
}

}  // namespace
}  // namespace weft::crash
