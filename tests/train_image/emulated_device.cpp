// SPDX-License-Identifier: Apache-2.0
// --device emulated[:GPU] starts a program again under weft-emulate.
#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>

#include "core/choose_device.h"
#include "tests/train_image/program.h"

namespace weft::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kEmulatedRun = "--data random:64x8x8x3 --model resnet8 --batch-size 8 --max-steps 3 --workers 0 ";
constexpr const char* kNoEmulator = "needs weft-emulate, and PTX and a shared CUDA runtime in this build";

class EmulatedDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!WEFT_RUNS_EMULATED) GTEST_SKIP() << kNoEmulator;
  }
  static void expect_a100(const Outcome& run) {
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("device  cuda:0 (NVIDIA A100"));
  }

  const TemporaryFolder folder_;
  const std::string out_ = "--out '" + (folder_ / "one run") + "' ";
};

TEST_F(EmulatedDevice, TrainsOnTheGpuThatTheFlagOrTheFileNames) {
  expect_a100(train_image(kEmulatedRun + out_ + "--device emulated:a100"));
  const std::string config = folder_ / "one run/config.toml";
  EXPECT_THAT(read_text(config), HasSubstr("device = \"emulated:a100\""));
  EXPECT_THAT(read_text(folder_ / "one run/summary.json"), HasSubstr("\"steps\": 3"));
  expect_a100(train_image("--overwrite --config '" + config + "'"));
}

TEST_F(EmulatedDevice, TheNameOnPathIsTheProgramThatStartsAgain) {
  const std::string program = TRAIN_IMAGE, bin = program.substr(0, program.rfind('/'));
  expect_a100(shell("cd '" + (folder_ / "") + "' && PATH=\"" + bin + ":$PATH\" train_image " + kEmulatedRun +
                    "--dry-run --device emulated:a100"));
}

TEST_F(EmulatedDevice, AnEmulatedProcessKeepsItsGpuUnlessAnotherIsNamed) {
  const std::string emulate = WEFT_EMULATE " --gpu ", run = " " TRAIN_IMAGE " " + kEmulatedRun + "--dry-run --device ";
  expect_a100(shell(emulate + "a100" + run + "emulated"));
  expect_a100(shell(emulate + "h100" + run + "emulated:a100"));
}

TEST_F(EmulatedDevice, AGpuThatDoesNotExistIsAnErrorThatNamesThoseThatDo) {
  const Outcome run = train_image(kEmulatedRun + out_ + "--device emulated:z80");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("expected one of h100 a100"), HasSubstr("got 'z80'")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "one run"));
  EXPECT_THAT(train_image(kEmulatedRun + out_ + "--device emulated:").output,
              HasSubstr("expected cpu, cuda, cuda:N or emulated, got 'emulated:'"));
}

TEST_F(EmulatedDevice, ErrorsAndExitCodesAreThoseOfTheProgram) {
  const Outcome run = train_image("--data random:8x8x8x3 --model resnet8 --batch-size 65 --device emulated " + out_);
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("train_image: error: "), HasSubstr("65")));
}

TEST_F(EmulatedDevice, EachRankHasItsOwn) {
  if (!WEFT_HAVE_RANKS || !WEFT_HAVE_NCCL) GTEST_SKIP() << "needs a build with libcrypto and NCCL's header";
  const Outcome run = shell(std::string(WEFT_RUN) + " --nproc_per_node 2 " + TRAIN_IMAGE + " " + kEmulatedRun + out_ +
                            "--parallel ddp --device emulated:a100");
  expect_a100(run);
  EXPECT_THAT(run.output, HasSubstr("ranks   2 over nccl (RANK and WORLD_SIZE), ddp"));
}

// A program of one's own, without the flags of apps/support.
TEST(EmulatedDeviceDeathTest, ChooseDeviceStartsAnyProgramAgain) {
  if (!WEFT_RUNS_EMULATED) GTEST_SKIP() << kNoEmulator;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::cerr << describe(choose_device("emulated:l4"));
        std::exit(7);
      },
      testing::ExitedWithCode(7), "cuda:0 \\(NVIDIA L4");
}

TEST(EmulatedDeviceMissing, IsAnErrorWithTheCure) {
  if (WEFT_HAVE_EMULATOR) GTEST_SKIP() << "this build has weft-emulate";
  const Outcome run = shell("PATH= " TRAIN_IMAGE " " + kEmulatedRun + "--device emulated");
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("device: 'emulated' needs weft-emulate, which is not beside this program"));
}

}  // namespace
}  // namespace weft::tests
