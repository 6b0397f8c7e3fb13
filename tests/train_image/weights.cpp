// SPDX-License-Identifier: Apache-2.0
// --weights takes any format, and says what did not fit.
#include <gmock/gmock.h>

#include <fstream>

#include "io/safetensors.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"
#include "tests/train_image/program.h"
#include "train/record/canvas.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

TEST(Weights, OtherFormatsOtherClasses) {
  const TemporaryFolder folder;
  const std::string common = "--model resnet8 --batch-size 16 --overwrite --out " + (folder / "run") + " ";
  const std::string exported = folder / "a.safetensors";
  const Outcome run = train_image(common + "--data random:64x16x16x3 --epochs 1 --export " + exported);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::string evaluate = common + "--data random:64x16x16x3 --eval-only --weights ";
  const Outcome first = train_image(evaluate + exported);
  const auto result = [](const Outcome& outcome) {
    const size_t place = outcome.output.find("val loss");
    return outcome.output.substr(place, outcome.output.find(" of ", place) - place);
  };
  ASSERT_THAT(first.output, HasSubstr("val loss"));
  if (have_zip()) {
    StateDict wrapped;
    for (const NamedTensor& entry : read_safetensors(exported).state.tensors)
      wrapped.tensors.push_back({"backbone." + entry.name, entry.tensor});
    write_torch(folder / "a.pt", wrapped);
    const Outcome second = train_image(evaluate + (folder / "a.pt") + " --weights-prefix backbone.");
    EXPECT_EQ(result(second), result(first)) << second.output;
  }
  const std::string checkpoint = folder / "run/checkpoint_last.safetensors";
  if (std::filesystem::exists(checkpoint)) {
    const Outcome third = train_image(evaluate + checkpoint + " --weights-key model");
    EXPECT_EQ(result(third), result(first)) << third.output;
  }

  // Weights for ten classes into a network for another number of them.
  StateDict smaller = read_safetensors(exported).state;
  for (NamedTensor& entry : smaller.tensors)
    if (entry.name.starts_with("linear.")) entry.tensor = entry.tensor.slice(0, 0, 3);
  write_safetensors(folder / "b.safetensors", smaller);
  const std::string text =
      "wrong shape: linear.weight (expected [10,64], got [3,64]), linear.bias (expected [10], got [3])";
  const Outcome strict = train_image(evaluate + (folder / "b.safetensors"));
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(strict.output, HasSubstr("train_image: error: --weights " + (folder / "b.safetensors") +
                                       ": load_state_dict: the weights do not fit CifarResNet; " + text + "\n"));
  const Outcome loose = train_image(evaluate + (folder / "b.safetensors") + " --weights-strict no");
  EXPECT_EQ(loose.exit_code, 0) << loose.output;
  EXPECT_THAT(loose.output, HasSubstr("tensors loaded; " + text + "\n"));
}

/// A folder of grey images: those of the validation part are brighter by far.
void write_images(const std::string& root, const std::string& part, int brightness) {
  for (int label = 0; label < 2; ++label) {
    const std::string folder = root + "/" + part + "/" + std::to_string(label);
    std::filesystem::create_directories(folder);
    for (int i = 0; i < 4; ++i) {
      train::Canvas image(8, 8);
      for (size_t p = 0; p < image.pixels.size(); ++p)
        image.pixels[p] = static_cast<uint8_t>(brightness + 40 * label + 7 * i + static_cast<int>(p % 11));
      const std::string png = train::encode_png(image);
      std::ofstream(folder + "/" + std::to_string(i) + ".png", std::ios::binary) << png;
    }
  }
}

TEST(Weights, EvaluationNormalisesAsTrainingDid) {
  if (!train::have_png()) GTEST_SKIP() << "this build writes no PNG";
  const TemporaryFolder folder;
  const std::string set = folder / "set", exported = folder / "a.safetensors";
  write_images(set, "train", 10);
  write_images(set, "val", 140);
  const std::string common =
      "--model resnet8 --image-size 8 --batch-size 4 --workers 0 --device cpu --overwrite --data folder:" + set +
      " --out " + (folder / "run") + " ";
  const Outcome run = train_image(common + "--epochs 1 --export " + exported);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto evaluate = [&](const std::string& flags) {
    const Outcome outcome = train_image(common + "--eval-only --weights " + flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const size_t at = outcome.output.find("val loss");
    return std::pair(outcome.output.substr(at, outcome.output.find(" of ", at) - at), outcome.output);
  };
  const auto [with_training, page] = evaluate(exported);
  EXPECT_THAT(page, HasSubstr("normalised as those of " + exported));
  EXPECT_THAT(run.output, HasSubstr(with_training.substr(0, 14)));  // the last epoch's `val loss 0.1234`
  StateDict bare = read_safetensors(exported).state;
  write_safetensors(folder / "bare.safetensors", bare);
  const auto [of_part, page_of_part] = evaluate(folder / "bare.safetensors");
  EXPECT_THAT(page_of_part, HasSubstr("normalised as those of the training part"));
  EXPECT_EQ(of_part, with_training);

  std::filesystem::remove_all(set + "/train");
  EXPECT_EQ(evaluate(exported).first, with_training);
  EXPECT_EQ(evaluate(folder / "run/checkpoint_last.safetensors").first, with_training);
  const auto [without, page_without] = evaluate(folder / "bare.safetensors");
  EXPECT_THAT(page_without, HasSubstr("normalised as those of the validation part"));
  EXPECT_NE(without, with_training);
}

TEST(Weights, ADryRunTrainsNothing) {
  const TemporaryFolder folder;
  const Outcome plan = train_image(
      "--data random:64x8x8x3 --model resnet8 --batch-size 16 --epochs 3 --dry-run --out " + (folder / "run"));
  EXPECT_EQ(plan.exit_code, 0) << plan.output;
  EXPECT_THAT(plan.output, HasSubstr("dry run: would train 3 epochs of 4 steps, 16 images each, sgd at"));
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace weft::tests
