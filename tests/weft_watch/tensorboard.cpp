// SPDX-License-Identifier: Apache-2.0
// TensorBoard reads our programs' files: checks the answers of its server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"
#include "train/record/scalar_log.h"
#include "train/record/tensorboard.h"

namespace weft::tests {
namespace {

using nlohmann::json;
using train::ScalarLog;

/// A python that has the package tensorboard: WEFT_PYTHON, else python3.
std::string python() {
  const char* chosen = std::getenv("WEFT_PYTHON");
  return chosen == nullptr ? "python3" : chosen;
}

#define NEEDS_TENSORBOARD()                                                                       \
  if (shell(python() + " -c 'import tensorboard'").exit_code != 0)                                \
  GTEST_SKIP() << "NOT TESTED against TensorBoard: install Python's package tensorboard, or set " \
                  "WEFT_PYTHON to a python3 that has it"

json what_tensorboard_says(const std::string& folder) {
  const Outcome said = shell('(' + python() + ' ' + READ_TENSORBOARD + ' ' + folder + " 2>/dev/null)");
  EXPECT_EQ(said.exit_code, 0) << said.output;
  return json::parse(said.output, nullptr, false);
}

TEST(TensorBoardItself, LoadsTheFilesOfARealRun) {
  NEEDS_TENSORBOARD();
  const TemporaryFolder folder;
  const Outcome run =
      shell(std::string(TRAIN_IMAGE) +
            " --data random:96x16x16x3 --model resnet8 --batch-size 32 --epochs 3 --lr 0.05 --device cpu "
            "--out " +
            (folder / "runs/first"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const json board = what_tensorboard_says(folder / "runs");
  ASSERT_TRUE(board.is_object());

  const json& scalars = board["scalars"]["first"];
  std::istringstream lines(read_text(folder / "runs/first/metrics.jsonl"));
  size_t rows = 0;
  for (std::string text; std::getline(lines, text); ++rows) {
    const json row = json::parse(text);
    for (const char* key : {"loss", "accuracy"}) {
      const json& point = scalars[std::string(key) + '/' + row["split"].get<std::string>()][rows / 2];
      EXPECT_EQ(point[0], row["step"]);
      EXPECT_FLOAT_EQ(point[1].get<float>(), row[key].get<float>());
    }
  }
  EXPECT_EQ(rows, 6u);
  EXPECT_EQ(scalars["lr"].size(), 3u);
  if (train::have_png()) {
    const json& images = board["images"]["first"];
    EXPECT_EQ(images["samples"].size(), 1u);
    EXPECT_EQ(images["confusion"].size(), 3u);
    EXPECT_GT(images["confusion"][2][1][0].get<int>(), 100);  // a PNG of that width
  }
  const json& session = board["sessions"]["first"];
  EXPECT_EQ(session[0], "STATUS_SUCCESS");
  EXPECT_EQ(session[1]["model"], "resnet8");
  EXPECT_EQ(session[1]["lr"], 0.05);
}

TEST(TensorBoardItself, ForgetsWhatAResumedRunMakesAgain) {
  NEEDS_TENSORBOARD();
  const TemporaryFolder folder;
  {
    ScalarLog log(folder / "0");
    log.config({{"lr", 1e-3}, {"amp", true}, {"scheduler", "cosine"}});
    for (const int64_t step : {1, 2, 3, 4}) log.log(step, {{"val_loss", static_cast<double>(step)}});
  }
  {
    ScalarLog log(folder / "0", 2);
    log.log(3, {{"val_loss", 30}, {"validation accuracy", std::nan("")}});
    log.end(false);
  }
  const json board = what_tensorboard_says(folder / "");
  ASSERT_TRUE(board.is_object());
  EXPECT_EQ(board["scalars"]["0"]["val_loss"], json::parse("[[1,1],[2,2],[3,30]]"));
  EXPECT_EQ(board["scalars"]["0"]["validation accuracy"].size(), 1u);
  EXPECT_EQ(board["sessions"]["0"],
            json::parse(R"(["STATUS_FAILURE", {"amp": true, "lr": 0.001, "scheduler": "cosine"}])"));
}

TEST(TensorBoardItself, ShowsHistogramsAndTexts) {
  NEEDS_TENSORBOARD();
  const TemporaryFolder folder;
  {
    train::TensorBoard log(folder / "0");
    log.scalar("loss", 1, 7);
    log.histogram("weights", Tensor::from<double>({0, 0, 0, 32, 64}), 7);
    log.text("notes", "a **bold** word", 8);
  }
  const json board = what_tensorboard_says(folder / "");
  ASSERT_TRUE(board.is_object());
  const json& histogram = board["histograms"]["0"]["weights"];
  ASSERT_EQ(histogram.size(), 1u) << histogram;
  EXPECT_EQ(histogram[0][0], 7);
  double at_zero = 0, at_middle = 0, at_end = 0;
  for (const json& bin : histogram[0][1]) {
    const double left = bin[0], right = bin[1], count = bin[2];
    (right < 20 ? at_zero : left > 50 ? at_end : at_middle) += count;
  }
  EXPECT_NEAR(at_zero, 3, 1e-9);
  EXPECT_NEAR(at_middle, 1, 1e-9);
  EXPECT_NEAR(at_end, 1, 1e-9);
  EXPECT_EQ(board["texts"]["0"]["notes"], json::parse(R"([[8, "<p>a <strong>bold</strong> word</p>"]])"));
}

}  // namespace
}  // namespace weft::tests
