// SPDX-License-Identifier: Apache-2.0
// weft-watch as its users start it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"
#include "train/record/metrics.h"
#include "train/record/scalar_log.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using train::ScalarLog;

Outcome watch(const std::string& arguments, const std::string& variables = "LC_ALL=C") {
  return shell("env -u NO_COLOR -u COLUMNS " + variables + ' ' + WEFT_WATCH + ' ' + arguments);
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// A run of a workflow program.
void make_run(const std::string& folder, double start, bool ended = true) {
  ScalarLog log(folder);
  log.config({{"lr", start}, {"model", "cnn"}});
  for (int64_t step = 1; step <= 20; ++step)
    log.log(step, {{"train_loss", start / static_cast<double>(step)},
                   {"val_loss", 2 * start / static_cast<double>(step)},
                   {"grad", 1}});
  if (ended) log.end(true);
}

TEST(WeftWatch, LinesThatNobodyCanReadAreAnError) {
  const TemporaryFolder folder;
  make_run(folder / "run", 1);
  const Outcome full = shell("( " WEFT_WATCH " " + (folder / "run") + " --list 2>&1 > /dev/full )");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.output, HasSubstr("standard output: not all lines could be written. Is the disk full?"));
}

TEST(WeftWatch, HelpSaysHow) {
  const Outcome help = watch("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* text : {"weft-watch runs/a runs/b --follow", "--html", "--smooth", "--metrics", "moving mean"})
    EXPECT_THAT(help.output, HasSubstr(text));
}

TEST(WeftWatch, DrawsTheRunsInPlainAsciiWhereTheLocaleIsNotUtf8) {
  const TemporaryFolder folder;
  make_run(folder / "a", 1);
  make_run(folder / "b", 0.5);
  const Outcome drawn = watch((folder / "a") + ' ' + (folder / "b") + " --width 80");
  EXPECT_EQ(drawn.exit_code, 0);
  for (const char* text :
       {"train_loss", "val_loss", "finished", "0.05 (0.05 at 20)", "0.1 (0.1 at 20)", "*  a", "+  b"})
    EXPECT_THAT(drawn.output, HasSubstr(text));
  EXPECT_THAT(drawn.output, Not(HasSubstr("grad")));  // only losses, accuracies and throughput, unless asked for
  for (const char c : drawn.output) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
  std::istringstream lines(drawn.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(WeftWatch, BrailleAndColors) {
  const TemporaryFolder folder;
  make_run(folder / "a", 1);
  make_run(folder / "b", 1);
  const std::string one = folder / "a", two = one + ' ' + (folder / "b");
  EXPECT_THAT(watch(one, "LC_ALL=C.UTF-8").output, HasSubstr("⠤"));
  EXPECT_THAT(watch(one, "LC_ALL= LC_CTYPE=de_DE.utf8").output, HasSubstr("│"));
  EXPECT_THAT(watch(two, "LC_ALL=C.UTF-8").output, HasSubstr("+  b"));  // dots without colour would look the same
  EXPECT_THAT(watch(two + " --color always", "LC_ALL=C.UTF-8").output, HasSubstr("\033[38;5;208m━━\033[0m b"));
  EXPECT_THAT(watch(two + " --symbols ascii", "LC_ALL=C.UTF-8").output, Not(HasSubstr("│")));
}

TEST(WeftWatch, WideTerminalsGetChartsSideBySide) {
  const TemporaryFolder folder;
  make_run(folder / "a", 1);
  EXPECT_THAT(watch((folder / "a") + " --width 130").output, MatchesRegex("train_loss +val_loss +\n(.|\n)*"));
  EXPECT_THAT(watch(folder / "a", "COLUMNS=130").output, MatchesRegex("train_loss +val_loss +\n(.|\n)*"));
  EXPECT_THAT(watch(folder / "a").output, MatchesRegex("train_loss +\n(.|\n)*"));
}

TEST(WeftWatch, NamedMetricsAndList) {
  const TemporaryFolder folder;
  make_run(folder / "a", 1);
  const Outcome named = watch((folder / "a") + " --metrics grad,loss/val");
  EXPECT_THAT(named.output, MatchesRegex("grad(.|\n)*val_loss(.|\n)*"));
  EXPECT_THAT(named.output, Not(HasSubstr("train_loss")));
  EXPECT_EQ(watch((folder / "a") + " --list").output,
            "train_loss  20 points in 1 run\nval_loss  20 points in 1 run\ngrad  20 points in 1 run\n");
}

TEST(WeftWatch, RunsOfAFolderAndNamesOfTheirOwn) {
  const TemporaryFolder folder;
  for (const char* name : {"sweep/lr=2", "sweep/lr=10", "other"}) make_run(folder / name, 1);
  const Outcome all = watch((folder / "sweep") + " base=" + (folder / "other"));
  EXPECT_THAT(all.output, HasSubstr("*  lr=2 "));
  EXPECT_THAT(all.output, HasSubstr("+  lr=10 "));
  EXPECT_THAT(all.output, HasSubstr("o  base "));
}

TEST(WeftWatch, RunsBelowARunAreShownBesideIt) {
  const TemporaryFolder folder;
  make_run(folder / "tb", 1);
  make_run(folder / "tb/loss_val", 0.5);
  const Outcome drawn = watch((folder / "tb") + " --width 80");
  EXPECT_EQ(drawn.exit_code, 0);
  for (const char* text : {"*  . ", "+  loss_val "}) EXPECT_THAT(drawn.output, HasSubstr(text));
}

TEST(WeftWatch, TheListSaysWhatItCouldNotRead) {
  const TemporaryFolder folder;
  write_text(folder / "log.txt", "epoch,loss\n0,1.5\n");
  const Outcome listed = watch((folder / "log.txt") + " --list");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.output, HasSubstr("skipped 2 of 2 lines (line 1 is the first that is no JSON object)"));
  EXPECT_THAT(listed.output, HasSubstr("no numbers yet"));
}

TEST(WeftWatch, BadLinesAreNotedOnce) {
  const TemporaryFolder folder;
  make_run(folder / "a", 1);
  std::ofstream(folder / "a/metrics.jsonl", std::ios::app) << "rubbish\n{\"step\":21,\"val_lo";
  const Outcome drawn = watch(folder / "a");
  EXPECT_EQ(drawn.exit_code, 0);
  EXPECT_THAT(drawn.output,
              HasSubstr("note: " + (folder / "a/metrics.jsonl") +
                        ": skipped 2 of 22 lines (line 21 is the first that is no JSON object; the last one is "
                        "half-written)\n"));

  // Values of many levels would overflow the stack.
  const std::string deep = "{\"step\":1,\"val_loss\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}\n";
  std::filesystem::create_directory(folder / "b");
  std::ofstream(folder / "b/metrics.jsonl") << deep << "{\"step\":2,\"val_loss\":1}\n";
  const Outcome other = watch(folder / "b");
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_THAT(other.output, HasSubstr("val_loss"));
}

// Each name was looked for among all others, and each got a chart.
TEST(WeftWatch, AHundredThousandNamesAreNoReasonToWait) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a");
  std::string line = "{\"step\":1";
  for (int i = 0; i < 100'000; ++i) line += ",\"n" + std::to_string(i) + "\":" + std::to_string(i);
  write_text(folder / "a/metrics.jsonl", line + "}\n");
  const Outcome drawn = watch(folder / "a", "timeout 60");
  EXPECT_EQ(drawn.exit_code, 0);
  EXPECT_THAT(drawn.output, HasSubstr("note: 30 of 100000 curves are shown; --list names all, --metrics chooses\n"));
  EXPECT_EQ(watch((folder / "a") + " --list", "timeout 60").exit_code, 0);
}

TEST(WeftWatch, NamesThatWouldMoveTheCursorAreShownAsText) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a");
  write_text(folder / "a/metrics.jsonl", "{\"step\":1,\"loss\\u001b[2J\":1}\n");
  EXPECT_THAT(watch(folder / "a").output, Not(HasSubstr("\033")));
}

TEST(WeftWatch, Errors) {
  const TemporaryFolder folder;
  const std::string path = folder / "";
  const auto expect = [](const std::string& arguments, int code, const std::string& text) {
    const Outcome outcome = watch(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_EQ(outcome.output, "weft-watch: error: " + text + "\n") << arguments;
  };
  const std::string help = " (weft-watch --help lists the flags)";
  expect("", 2, "expected at least one RUN, the folder of a run" + help);
  expect(path + "none", 1, "expected a run's folder, got nothing at " + path + "none");
  expect(path + "none --follow", 1, "expected a run's folder, got nothing at " + path + "none");
  expect(path, 1,
         "expected metrics.jsonl, a TensorBoard event file, metrics.csv or trainer_state.json, found none in " + path +
             " and the folders below it. A .csv of another name can be given itself");
  expect(path + " --smoth 1", 2, "unknown flag --smoth. Did you mean --smooth?" + help);
  expect(path + " --smooth 1", 2, "--smooth: expected a value at least 0 and at most 0.999, got 1" + help);
  expect(path + " --x steps", 2, "--x: unknown value 'steps'. Did you mean 'step'?" + help);
  make_run(folder / "a", 1);
  expect((folder / "a") + " --metrics acc,foo", 2,
         "--metrics: no curve is called 'acc'. There are: train_loss, val_loss, grad" + help);
  expect((folder / "a") + " --html " + path + "no/page.html", 1,
         "page: expected an existing folder for " + path + "no/page.html, got none at " + path + "no");
}

TEST(WeftWatch, FollowDrawsAgainUntilTheRunsEnd) {
  const TemporaryFolder folder;
  make_run(folder / "a", 1, false);
  const std::string drawn = folder / "drawn";
  write_text(drawn, "");
  std::thread writer([&] {
    const auto wait_for = [&](const char* text) {
      for (int i = 0; i < 3000 && read_text(drawn).find(text) == std::string::npos; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    wait_for("step 20");
    ScalarLog log(folder / "a", 20);
    log.log(21, {{"val_loss", 0.001}});
    wait_for("step 21");
    log.end(true);
  });
  const Outcome followed = watch((folder / "a") + " --follow --interval 0.1 >" + drawn);
  writer.join();
  EXPECT_EQ(followed.exit_code, 0) << followed.output;
  EXPECT_THAT(read_text(drawn), MatchesRegex("(.|\n)*step 20(.|\n)*step 21(.|\n)*0.001(.|\n)*finished(.|\n)*"));
}

TEST(WeftWatch, FollowWaitsForARunThatHasNotBegun) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "runs");
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    make_run(folder / "runs/first", 1);
  });
  const Outcome followed = watch((folder / "runs") + " --follow --interval 0.1");
  writer.join();
  EXPECT_EQ(followed.exit_code, 0);
  EXPECT_THAT(followed.output, HasSubstr("finished"));
}

}  // namespace
}  // namespace weft::tests
