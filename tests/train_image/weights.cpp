// SPDX-License-Identifier: Apache-2.0
// --weights takes any format, and says what did not fit.
#include <gmock/gmock.h>

#include "apps/support/weights/weights_file.h"
#include "apps/support/weights/zip_archive.h"
#include "core/safetensors.h"
#include "tests/train_image/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

TEST(Weights, OtherFormatsOtherClasses) {
  const TemporaryFolder folder;
  const std::string common = "--model resnet8 --batch-size 16 --out " + (folder / "run") + " ";
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
  if (support::have_zip()) {
    StateDict wrapped;
    for (const NamedTensor& entry : read_safetensors(exported).state.tensors)
      wrapped.tensors.push_back({"backbone." + entry.name, entry.tensor});
    support::write_torch(folder / "a.pt", wrapped);
    const Outcome second = train_image(evaluate + (folder / "a.pt") + " --weights-prefix backbone.");
    EXPECT_EQ(result(second), result(first)) << second.output;
  }
  const std::string checkpoint = folder / "run/checkpoint_last.h5";
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

}  // namespace
}  // namespace weft::tests
