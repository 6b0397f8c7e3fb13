// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/dist/child.h"
#include "tests/train_image/program.h"
#include "train/exit.h"

namespace weft::tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsSupersetOf;

const std::string kSmall = "--data random:96x16x16x3 --model resnet8 --batch-size 16 --epochs 2 --seed 3 ";

TEST(TrainProfile, WritesTraceAndTable) {
  const TemporaryFolder folder;
  const std::string trace_file = folder / "trace.json";
  const Outcome run = train_image(kSmall + "--device cpu --workers 1 --out " + (folder / "run") + " --profile " +
                                  trace_file + " --profile-steps 1:11");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("profiled steps 1 to 10: wrote " + trace_file));

  const std::string table = read_text(folder / "trace.txt");
  EXPECT_THAT(table, ContainsRegex("conv2d backward +conv2d_backward_weight"));
  EXPECT_THAT(table, ContainsRegex("main: step +10 "));
  EXPECT_THAT(run.output, HasSubstr(table)) << "the table stands at the end of the output too";

  std::set<std::string> names, tracks;
  const nlohmann::json trace = nlohmann::json::parse(read_text(trace_file));
  for (const nlohmann::json& event : trace.at("traceEvents"))
    (event.at("ph") == "M" ? tracks : names)
        .insert(event.at("ph") == "M" ? event.at("args").at("name").get<std::string>()
                                      : event.at("name").get<std::string>());
  EXPECT_THAT(names, IsSupersetOf({"step", "forward", "backward", "optimizer", "next batch", "assemble images",
                                   "conv2d", "conv2d backward", "conv2d_statistics", "sgd_step", "memory"}));
  EXPECT_THAT(tracks, IsSupersetOf({"threads", "cpu", "main", "loader 0", "kernels of main"}));

  const std::string tool = TOOLS "/trace_svg ", image = folder / "step.svg";
  std::string all;  // a loader that is ahead rests for some of the steps
  for (int step = 0; step < 10; ++step) {
    const Outcome drawn = shell(tool + trace_file + ' ' + image + " --step " + std::to_string(step));
    EXPECT_EQ(drawn.exit_code, 0) << drawn.output;
    const std::string svg = read_text(image);
    for (const char* text : {"<svg ", "One training step: ", "cpu memory", "conv2d backward: ", "</svg>"})
      EXPECT_THAT(svg, HasSubstr(text));
    all += svg;
  }
  EXPECT_THAT(all, HasSubstr("loader 0"));
  EXPECT_THAT(shell(tool + trace_file + ' ' + image + " --step 10").output,
              HasSubstr("trace_svg: --step 10: the trace has 10 steps"));
  EXPECT_THAT(shell(tool + (folder / "trace.txt") + ' ' + image).output,
              HasSubstr("trace.txt is no trace: expected JSON with traceEvents"));
}

TEST(TrainProfile, LeavesTheTrainingAsItIs) {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& name, const std::string& more) {
    return train_image(kSmall + "--overwrite --export " + (folder / name) + " --out " + (folder / "run") + more);
  };
  ASSERT_EQ(train("plain.safetensors", "").exit_code, 0);
  ASSERT_EQ(train("profiled.safetensors", " --profile " + (folder / "t.json")).exit_code, 0);
  EXPECT_EQ(read_text(folder / "plain.safetensors"), read_text(folder / "profiled.safetensors"));
}

TEST(TrainProfile, RunsThatEndEarly) {
  const TemporaryFolder folder;
  const std::string common = kSmall + "--overwrite --out " + (folder / "run") + " --profile " + (folder / "t.json");
  const Outcome inside = train_image(common + " --profile-steps 1:100 --max-steps 3");
  EXPECT_EQ(inside.exit_code, 0) << inside.output;
  EXPECT_THAT(inside.output, HasSubstr("profiled steps 1 to 2: wrote "));
  std::filesystem::remove(folder / "t.json");
  const Outcome before = train_image(common + " --profile-steps 50:60");
  EXPECT_EQ(before.exit_code, 0) << before.output;
  EXPECT_THAT(before.output,
              HasSubstr("nothing is profiled: --profile-steps begins at 50, this process made 12 steps"));
  EXPECT_FALSE(std::filesystem::exists(folder / "t.json"));
}

// Killed again and again, at any moment: the trace is absent or whole.
TEST(TrainProfile, AKillLeavesNoTornFile) {
  const TemporaryFolder folder;
  const std::string trace_file = folder / "t.json";
  int whole = 0;
  for (int delay = 0; delay < 12; ++delay) {
    std::filesystem::remove(trace_file);
    const Outcome run =
        shell("timeout --signal=KILL 0." + std::to_string(100 + 60 * delay) + " " + TRAIN_IMAGE + " " + kSmall +
              "--overwrite --out " + (folder / "run") + " --profile-steps 0:2 --profile " + trace_file);
    if (!std::filesystem::exists(trace_file)) continue;
    ++whole;
    EXPECT_TRUE(nlohmann::json::accept(read_text(trace_file))) << "after " << delay << ": " << run.output;
  }
  // A signal that asks the program to stop gives it the time to write.
  dist::Child stopped({"sh", "-c",
                       "exec " TRAIN_IMAGE " " + kSmall + "--overwrite --epochs 100000 --out " + (folder / "run") +
                           " --profile-steps 0:1000000 --profile " + trace_file});
  EXPECT_TRUE(stopped.prints("epoch 1/"));
  stopped.signal(SIGTERM);
  EXPECT_EQ(stopped.exit_code(), train::kExitRequeue);
  EXPECT_THAT(stopped.output(), HasSubstr("stopped by SIGTERM"));
  EXPECT_TRUE(nlohmann::json::accept(read_text(trace_file)));
  RecordProperty("whole", whole);
}

TEST(TrainProfile, WrongOptions) {
  const TemporaryFolder folder;
  const std::string common = kSmall + "--overwrite --out " + (folder / "run");
  for (const char* steps : {"5", "5:5", "8:5", "-1:2", "a:b", "1:2:3", ""}) {
    const Outcome run = train_image(common + " --profile-steps '" + steps + "'");
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_THAT(run.output, HasSubstr(std::string("--profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '") +
                                      steps + "'"));
  }
  EXPECT_THAT(train_image(common + " --profile /no/such/folder/t.json").output,
              HasSubstr("profile: expected an existing folder for /no/such/folder/t.json"));
  EXPECT_THAT(train_image(common + " --profile t.txt").output,
              HasSubstr("--profile: expected FILE.json, got 't.txt': FILE.txt is where the table goes"));
}

}  // namespace
}  // namespace weft::tests
