// SPDX-License-Identifier: Apache-2.0
#include "train/run_options.h"

#include <gtest/gtest.h>

#include "nn/linear.h"
#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

using test::error_of;

TEST(RunOptions, PrecisionDecidesOfProductsAndOfGatheredWeights) {
  for (const auto& [word, dtype] : {std::pair("f32", DType::f32), {"bf16", DType::bf16}, {"fp8", DType::bf16}}) {
    RunOptions options;
    options.precision = word;
    EXPECT_EQ(engine_options(options).precision, dtype) << word;
    EXPECT_EQ(strategy_options(options).low_precision, dtype != DType::f32) << word;
  }
}

TEST(RunOptions, Fp8WantsTransformerBlocks) {
  RunOptions options;
  options.model = "two";
  nn::Linear model(2, 2);
  place(options, model, Device{});
  options.precision = "fp8";
  EXPECT_EQ(error_of([&] { place(options, model, Device{}); }),
            "--precision fp8: expected a model of transformer blocks, such as vit_small16, got two");
}

TEST(RunOptions, ARunGoesOnInTheFolderThatResumeNames) {
  const test::TemporaryFolder folder;
  RunOptions options;
  options.out = (folder / "run").string();
  EXPECT_TRUE(new_run(options));
  options.resume = "auto";
  EXPECT_FALSE(new_run(options));
}

TEST(RunOptions, SettingsThatChangeNoResultAreNoChanges) {
  RunOptions options;
  options.toml = "lr = 0.1\nout = \"b\"\nmodel = \"c\"\nworkers = 2\n";
  Checkpoint saved;
  EXPECT_TRUE(changed_settings(saved, options, "").empty());
  saved.texts["config"] = "lr = 0.2\nout = \"a\"\nmodel = \"a\"\nworkers = 1\n";
  EXPECT_EQ(note_of(changed_settings(saved, options, "model")),
            "with other settings than the checkpoint: lr 0.2 -> 0.1");
  EXPECT_EQ(note_of({}), "");
}

}  // namespace
}  // namespace weft::train
