// SPDX-License-Identifier: Apache-2.0
#include "tests/support/devices.h"
#include "tests/vista/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The programs see the machine's GPUs, not the emulated one.
bool has_gpu() { return !emulated() && kernels::runtime(DeviceKind::cuda).device_count() > 0; }

TEST(WeftInfo, SaysFirstWhetherAGpuIsUsable) {
  const TemporaryFolder folder;
  const Outcome run = run_in(folder, "weft-info");
  EXPECT_EQ(run.exit_code, has_gpu() ? 0 : 1) << run.output;
  EXPECT_THAT(run.output, StartsWith(has_gpu() ? "GPU usable: yes, cuda:0 (" : "GPU usable: no, "));
  for (const char* text : {"\nweft      0.", "\ndriver    ", "\ndevice    cpu (", "\nlaunch    ", "\nbackends  ",
                           "\nHDF5      ", "libzip "})
    EXPECT_THAT(run.output, HasSubstr(text));
  EXPECT_THAT(run.output, HasSubstr(WEFT_HAVE_ZIP ? "part      found   libzip" : "part      MISSING libzip"));
}

TEST(WeftInfo, QuietIsOneLine) {
  const TemporaryFolder folder;
  const Outcome run = run_in(folder, "weft-info --quiet");
  EXPECT_EQ(run.exit_code, has_gpu() ? 0 : 1);
  EXPECT_EQ(run.output, lines_with(run.output, "GPU usable: "));
}

TEST(WeftInfo, SaysWhyNot) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_in(folder, "CUDA_VISIBLE_DEVICES= weft-info --quiet").exit_code, 1);
  const Outcome run = run_in(folder, "CUDA_VISIBLE_DEVICES= weft-info");
  EXPECT_THAT(run.output, StartsWith("GPU usable: no, "));
  EXPECT_THAT(run.output.substr(0, run.output.find('\n')),
              testing::AnyOf(HasSubstr("cudaGetDeviceProperties: "), HasSubstr("this build has no CUDA")));
  EXPECT_THAT(run.output, HasSubstr("visible   CUDA_VISIBLE_DEVICES=\n"));
}

// A driver that cannot be used is no machine without GPUs: nobody shall train on the CPU for weeks and not know.
TEST(WeftInfo, TellsAnOldDriverFromNone) {
  if (!WEFT_HAVE_CUDA) GTEST_SKIP() << "needs CUDA's runtime, which asks the driver";
  const TemporaryFolder folder;
  const std::string old = "LD_LIBRARY_PATH=" OLD_DRIVER " ";
  const auto refusal =
      HasSubstr("(cudaErrorInsufficientDriver): the driver is for CUDA 12.4, and this program needs one ");
  const Outcome run = run_in(folder, old + "weft-info");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, StartsWith("GPU usable: no, cudaGetDeviceCount: CUDA driver version is insufficient"));
  EXPECT_THAT(run.output, refusal);
  EXPECT_EQ(run_in(folder, old + "single_gpu 1 1 --device auto").exit_code, 1);
  EXPECT_THAT(said(folder), refusal);
  EXPECT_NE(run_in(folder, old + "weft-run --nproc-per-node gpu single_gpu 1 1").exit_code, 0);
  EXPECT_THAT(said(folder), refusal);
  EXPECT_EQ(run_in(folder, old + "weft-run --nproc-per-node 1 single_gpu 1 1 --device cpu").exit_code, 0)
      << said(folder);
}

TEST(WeftInfo, SaysHowThisProcessWasLaunched) {
  const TemporaryFolder folder;
  EXPECT_THAT(run_in(folder, "RANK=1 WORLD_SIZE=4 MASTER_ADDR=localhost weft-info").output,
              HasSubstr("launch    rank 1 of 4 (RANK and WORLD_SIZE)\n"));
  EXPECT_THAT(run_in(folder, "RANK=4 WORLD_SIZE=4 MASTER_ADDR=localhost weft-info").output,
              HasSubstr("launch    launch environment: RANK=4 contradicts WORLD_SIZE=4"));
  EXPECT_EQ(run_in(folder, "weft-info --quite").exit_code, 2);
  EXPECT_THAT(said(folder), HasSubstr("unknown flag --quite. Did you mean --quiet?"));
}

}  // namespace
}  // namespace weft::tests
