// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime.h"
#include "tests/vista/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

bool has_gpu() { return kernels::runtime(DeviceKind::cuda).device_count() > 0; }

TEST(WeftInfo, SaysFirstWhetherAGpuIsUsable) {
  const TemporaryFolder folder;
  const Outcome run = run_in(folder, "weft-info");
  EXPECT_EQ(run.exit_code, has_gpu() ? 0 : 1) << run.output;
  EXPECT_THAT(run.output, StartsWith(has_gpu() ? "GPU usable: yes, cuda:0 (" : "GPU usable: no, "));
  for (const char* text : {"\nweft      0.", "\ndriver    ", "\ndevice    cpu (", "\ndevice    simt (", "\nlaunch    ",
                           "\nbackends  ", "\nHDF5      ", "libzip "})
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
