// SPDX-License-Identifier: Apache-2.0
// Names of classes travel with weights and are matched by name.
#include <gmock/gmock.h>

#include <fstream>

#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "tests/train_image/program.h"
#include "train/record/canvas.h"
#include "train/record/class_names.h"

namespace weft::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string kCommon =
    "--model resnet8 --image-size 8 --augment none --batch-size 4 --workers 0 --device cpu --lr 0.02 ";

struct Colour {
  const char* folder;
  int red, green, blue;
};

/// ROOT/{train,val} with four images of each class, of one colour but for a little noise.
std::string write_set(const std::string& root, const std::vector<Colour>& classes) {
  for (const char* part : {"train", "val"})
    for (const Colour& one : classes) {
      fs::create_directories(fs::path(root) / part / one.folder);
      for (int i = 0; i < 4; ++i) {
        train::Canvas image(8, 8);
        for (size_t p = 0; p < 64; ++p) {
          const auto noise = static_cast<int>((p * 7 + static_cast<size_t>(i)) % 9);
          image.pixels[3 * p] = static_cast<uint8_t>(one.red + noise);
          image.pixels[3 * p + 1] = static_cast<uint8_t>(one.green + noise);
          image.pixels[3 * p + 2] = static_cast<uint8_t>(one.blue + noise);
        }
        std::ofstream(fs::path(root) / part / one.folder / (std::to_string(i) + ".png"), std::ios::binary)
            << train::encode_png(image);
      }
    }
  return root;
}

class Classes : public testing::Test {
 protected:
  void SetUp() override {
    if (!train::have_png()) GTEST_SKIP() << "this build writes no PNG";
    const std::string set = write_set(folder_ / "A", {{"cat", 230, 20, 20}, {"dog", 20, 20, 230}});
    const Outcome run =
        train_image(kCommon + "--data folder:" + set + " --epochs 8 --out " + out_ + " --export " + exported_);
    ASSERT_EQ(run.exit_code, 0) << run.output;
  }

  Outcome evaluate(const std::string& set, const std::string& weights) {
    return train_image(kCommon + "--data folder:" + set + " --eval-only --weights " + weights);
  }

  /// The exported weights under other names of the classes.
  std::string renamed(const std::string& name, const std::vector<std::string>& classes) {
    SafetensorsFile file = read_safetensors(exported_);
    file.metadata[train::kClassNames] = train::class_names_text(classes);
    write_safetensors(folder_ / name, file.state, file.metadata);
    return folder_ / name;
  }

  TemporaryFolder folder_;
  const std::string out_ = folder_ / "run", exported_ = folder_ / "a.safetensors";
};

TEST_F(Classes, AreInTheRunFolderTheCheckpointsAndTheExport) {
  EXPECT_EQ(read_text(out_ + "/classes.txt"), "0\tcat\n1\tdog\n");
  EXPECT_EQ(read_safetensors(exported_).metadata.at("class_names"), R"(["cat","dog"])");
  for (const char* name : {"last", "best"})
    EXPECT_EQ(load_checkpoint(out_ + "/checkpoint_" + name + ".safetensors").text("class_names"), R"(["cat","dog"])");
}

TEST_F(Classes, OtherNamesAreAnErrorOfAnEvaluation) {
  const std::string other = write_set(folder_ / "B", {{"Dog", 20, 20, 230}, {"cat", 230, 20, 20}});
  for (const std::string& weights : {out_ + "/checkpoint_last.safetensors", exported_}) {
    EXPECT_THAT(evaluate(folder_ / "A", weights).output, HasSubstr("accuracy 100.00%"));
    const Outcome outcome = evaluate(other, weights);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.output, HasSubstr("train_image: error: classes: expected those of " + weights +
                                          ", got others (only in the data: 'Dog', only in the file: 'dog'; 'Dog' and "
                                          "'dog' differ in case alone). Name the folders as the weights know the "
                                          "classes\n"));
  }
}

TEST_F(Classes, AnotherOrderIsMatchedByName) {
  const std::string weights = renamed("b.safetensors", {"dog", "cat"});  // a red image is a dog to these weights
  EXPECT_THAT(evaluate(folder_ / "A", weights).output, HasSubstr("accuracy 0.00%"));
  const std::string other = write_set(folder_ / "B", {{"cat", 20, 20, 230}, {"dog", 230, 20, 20}});
  const Outcome outcome = evaluate(other, weights);
  EXPECT_THAT(outcome.output, HasSubstr("accuracy 100.00%"));
  EXPECT_THAT(outcome.output,
              HasSubstr("classes matched by name with those of " + weights + ", which are in another order\n"));
  // A training goes on in that order.
  const Outcome run = train_image(kCommon + "--data folder:" + other + " --epochs 1 --weights " + weights + " --out " +
                                  (folder_ / "next"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(read_text(folder_ / "next/classes.txt"), "0\tdog\n1\tcat\n");
}

TEST_F(Classes, SomeOfTheWeightsClassesMayBeEvaluated) {
  const std::string some = write_set(folder_ / "B", {{"dog", 20, 20, 230}});
  const Outcome outcome = evaluate(some, exported_);
  EXPECT_THAT(outcome.output, HasSubstr("accuracy 100.00% (4 of 4)"));
  EXPECT_THAT(outcome.output,
              HasSubstr("classes matched by name: the data has 1 of the 2 classes of " + exported_ + "\n"));
}

TEST_F(Classes, WithoutNamesTheirNumbersCount) {
  SafetensorsFile file = read_safetensors(exported_);
  file.metadata.erase(train::kClassNames);
  write_safetensors(folder_ / "b.safetensors", file.state, file.metadata);
  const std::string numbered = renamed("c.safetensors", {"0", "1"});
  for (const std::string& weights : {std::string(folder_ / "b.safetensors"), numbered}) {
    const Outcome outcome = evaluate(folder_ / "A", weights);
    EXPECT_THAT(outcome.output, HasSubstr("accuracy 100.00%"));
    EXPECT_THAT(outcome.output, HasSubstr("classes matched by number: " + weights + " has no names of classes\n"));
  }
  const std::string numbers = write_set(folder_ / "B", {{"0", 230, 20, 20}, {"1", 20, 20, 230}});
  EXPECT_THAT(evaluate(numbers, exported_).output, HasSubstr("classes matched by number: the data has no names"));
}

TEST_F(Classes, FineTuningOnOthersIsAskedFor) {
  const std::string other = write_set(folder_ / "B", {{"eel", 20, 20, 230}, {"fox", 230, 20, 20}});
  const std::string line =
      kCommon + "--data folder:" + other + " --epochs 1 --weights " + exported_ + " --out " + (folder_ / "next");
  const Outcome strict = train_image(line);
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(
      strict.output,
      HasSubstr("got others (only in the data: 'eel', 'fox', only in the file: 'cat', 'dog'). --weights-strict no "
                "trains on from its weights with other classes\n"));
  const Outcome loose = train_image(line + " --weights-strict no");
  EXPECT_EQ(loose.exit_code, 0) << loose.output;
  EXPECT_THAT(loose.output, HasSubstr("classes other ones than those of " + exported_ +
                                      " (only in the data: 'eel', 'fox', only in the file: 'cat', 'dog'): the "
                                      "classifier learns them\n"));
}

TEST_F(Classes, AResumedRunHasTheSame) {
  const std::string resume = kCommon + "--epochs 9 --resume auto --out " + out_ + " --data folder:";
  const std::string other = write_set(folder_ / "B", {{"Dog", 20, 20, 230}, {"cat", 230, 20, 20}});
  const Outcome refused = train_image(resume + other);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              HasSubstr("checkpoint_last.safetensors: expected its classes, in their order, got others "
                        "(only in the data: 'Dog', only in the file: 'dog'; 'Dog' and 'dog' differ in "
                        "case alone). Name the folders as the checkpoint knows the classes, or begin a new run\n"));
  Checkpoint saved = load_checkpoint(out_ + "/checkpoint_last.safetensors");
  saved.texts[train::kClassNames] = train::class_names_text({"dog", "cat"});
  save_checkpoint(folder_ / "b.safetensors", saved);
  EXPECT_THAT(train_image(kCommon + "--epochs 9 --data folder:" + (folder_ / "A") + " --out " + (folder_ / "next") +
                          " --resume " + (folder_ / "b.safetensors"))
                  .output,
              HasSubstr("got another order in the data"));
  const Outcome on = train_image(resume + (folder_ / "A"));
  EXPECT_EQ(on.exit_code, 0) << on.output;
  EXPECT_THAT(on.output, Not(HasSubstr("\nclasses ")));
}

TEST_F(Classes, TheBestEpochIsNotChosenByTest) {
  const std::string set = folder_ / "A";
  fs::rename(set + "/val", set + "/valid");
  fs::create_directories(set + "/test/cat"), fs::create_directories(set + "/test/dog");
  for (const char* name : {"cat", "dog"})
    fs::copy_file(set + "/train/" + name + "/0.png", set + "/test/" + name + "/0.png");
  const std::string dry = kCommon + "--data folder:" + set + " --dry-run --out " + (folder_ / "next");
  EXPECT_THAT(train_image(dry).output, HasSubstr("val     folder val: 8 images"));
  fs::remove_all(set + "/valid");
  const Outcome refused = train_image(dry);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("got train, test. test is for the end, not to choose the best epoch by"));
  const Outcome evaluation = evaluate(set, exported_);
  EXPECT_THAT(evaluation.output, HasSubstr("val     folder test: 2 images"));
  EXPECT_THAT(evaluation.output, HasSubstr("accuracy 100.00% (2 of 2)"));
}

TEST_F(Classes, ATildeIsTheHomeFolder) {
  const std::string home = "HOME=" + (folder_ / "") + " ";
  std::ofstream(folder_ / "a.toml") << "data = \"folder:~/A\"\nweights = \"~/a.safetensors\"\n";
  for (const char* flags : {"--data=folder:~/A --weights='~/a.safetensors'", "--config='~/a.toml'"}) {
    const Outcome outcome = shell(home + TRAIN_IMAGE + " " + kCommon + "--eval-only " + flags);
    EXPECT_THAT(outcome.output, HasSubstr("accuracy 100.00%")) << flags;
  }
}

}  // namespace
}  // namespace weft::tests
