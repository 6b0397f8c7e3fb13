// SPDX-License-Identifier: Apache-2.0
// The shipped configuration: the tutorial's sections with the tutorial's numbers.
#include "apps/nersc_vit/options.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::nersc_vit {
namespace {

#if WEFT_HAVE_FILES

Options of_section(const std::string& section) {
  const std::string file = SCRIPTS "/config/ViT.yaml";
  const char* words[] = {"train_vit", "--yaml_config", file.c_str(), "--config", section.c_str()};
  Options options;
  EXPECT_TRUE(parse_options(5, const_cast<char**>(words), options));
  return options;
}

TEST(TrainVitOptions, BaseIsWhatTheTutorialBeginsWith) {
  const Options base = of_section("base");
  EXPECT_EQ(base.num_iters, 30000);
  EXPECT_EQ(base.num_data_workers, 0) << "more are the tutorial's first step";
  EXPECT_EQ(base.global_batch_size, 16);
  EXPECT_EQ(base.lr, 5e-4);
  EXPECT_EQ(base.precision, "none");
  EXPECT_EQ(base.model.width, 384);
  EXPECT_EQ(base.model.depth, 12);
  EXPECT_EQ(base.model.heads, 8);
  EXPECT_EQ(base.model.patch, 8);
  EXPECT_EQ(base.model.rows * base.model.columns, 360 * 720);
  EXPECT_EQ(of_section("short").num_iters, 128);
  EXPECT_EQ(of_section("short").limit_nsamples, 512);
  EXPECT_EQ(of_section("short").limit_nsamples_val, 128);
}

TEST(TrainVitOptions, TheRateGrowsWithTheRootOfTheBatch) {
  for (const int64_t batch : {16, 32, 64, 128, 256, 512, 1024, 2048}) {
    const Options options = of_section(str("bs", batch, "_opt"));
    EXPECT_EQ(options.global_batch_size, batch);
    EXPECT_NEAR(options.lr, 5e-4 * std::sqrt(static_cast<double>(batch) / 16), 1e-2 * options.lr) << batch;
  }
}

TEST(TrainVitOptions, TheLargeModelHasThreeBatchesAndAFinerPatch) {
  EXPECT_EQ(of_section("mp").model.width, 1024);
  EXPECT_EQ(of_section("mp").global_batch_size, 64);
  EXPECT_EQ(of_section("mp_bs32").global_batch_size, 32);
  EXPECT_EQ(of_section("mp_bs16").global_batch_size, 16);
  EXPECT_EQ(of_section("mp_bs16").model.width, 1024);
  EXPECT_EQ(of_section("mp_patch4").model.patch, 4);
}

#endif  // WEFT_HAVE_FILES

}  // namespace
}  // namespace weft::nersc_vit
