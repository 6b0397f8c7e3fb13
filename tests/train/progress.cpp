// SPDX-License-Identifier: Apache-2.0
#include "train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

ProgressState example() {
  return {.label = "epoch 3/20",
          .step = 50,
          .steps = 100,
          .first_step = 0,
          .loss = 1.23456,
          .accuracy = 0.567,
          .images_per_second = 812.4,
          .data_wait = 0.021,
          .elapsed = 60};
}

int columns(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST(Progress, BarShowsAllWhenThereIsRoom) {
  EXPECT_EQ(
      detail::bar_line(example(), 140),
      "epoch 3/20 │███████████████               │  50% 50/100  loss 1.2346  accuracy 56.7%  ETA 1:00  812 images/s"
      "  data wait 2%");
}

TEST(Progress, BarNeverExceedsTheWidth) {
  for (int width = 0; width < 200; ++width) EXPECT_LE(columns(detail::bar_line(example(), width)), width) << width;
  EXPECT_THAT(detail::bar_line(example(), 80), testing::HasSubstr("loss 1.2346  accuracy 56.7%"));
  EXPECT_THAT(detail::bar_line(example(), 80), testing::Not(testing::HasSubstr("data wait")));
}

TEST(Progress, PlainLine) {
  EXPECT_EQ(detail::plain_line(example()),
            "epoch 3/20  step 50/100  loss 1.2346  accuracy 56.7%  ETA 1:00  812 images/s  data wait 2%  elapsed 1:00");
  ProgressState unknown = example();
  unknown.loss = unknown.accuracy = std::nullopt;
  unknown.step = 100;
  EXPECT_EQ(detail::plain_line(unknown), "epoch 3/20  step 100/100  812 images/s  data wait 2%  elapsed 1:00");
  unknown.data_wait = -1;
  unknown.unit = "texts";
  EXPECT_EQ(detail::plain_line(unknown), "epoch 3/20  step 100/100  812 texts/s  elapsed 1:00");
  unknown.loss = std::nan("");
  EXPECT_THAT(detail::plain_line(unknown), testing::HasSubstr("loss nan"));
}

TEST(Progress, CountsTheStepsWhoseLossesAreReadTogether) {
  ProgressOptions options;
  options.terminal = 0;
  Progress progress(options);
  progress.begin("epoch 1/1", 79);
  progress.step({.images = 2560, .loss = 2.0, .steps = 20});
  progress.step({.images = 1280, .loss = 1.5, .steps = 10});
  EXPECT_EQ(progress.state().step, 30);
  progress.drop();
}

TEST(Progress, EtaCountsTheStepsMadeSinceTheResume) {
  ProgressState resumed = example();
  resumed.first_step = 40;  // 10 steps in 60 s, 50 to go
  EXPECT_THAT(detail::plain_line(resumed), testing::HasSubstr("ETA 5:00"));
}

TEST(Progress, ClockText) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(9.4), "0:09");
  EXPECT_EQ(clock_text(754), "12:34");
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(clock_text(-5), "0:00");
}

/// A Progress that writes to a file and whose clock the test moves.
struct Watched {
  test::TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "log").c_str(), "w");
  double time = 1000;
  Progress progress;
  explicit Watched(int terminal)
      : progress({.out = file,
                  .width = 100,
                  .terminal = terminal,
                  .rank = 3,
                  .clock = [this] { return time; },
                  .date = [] { return std::string("2026-11-25 03:08:07"); }}) {}
  ~Watched() { std::fclose(file); }
  std::string text() const { return test::read_file(folder / "log"); }
};

TEST(Progress, PlainLinesEveryTenSecondsAndAtTheEnd) {
  Watched w(0);
  w.progress.begin("epoch 1/2", 4);
  for (int i = 0; i < 4; ++i) {
    w.time += 4;
    w.progress.step({.images = 8, .loss = 2.0 - i, .correct = 4, .waited = 1});
  }
  EXPECT_EQ(w.text(),
            "2026-11-25 03:08:07 rank 3: epoch 1/2  step 3/4  loss 1.0000  accuracy 50.0%  ETA 0:04  2.0 images/s  "
            "data wait 25%  elapsed 0:12\n");
  w.progress.end("val accuracy 60%");
  EXPECT_THAT(w.text(), testing::EndsWith("\n2026-11-25 03:08:07 rank 3: epoch 1/2  step 4/4  loss 0.5000  accuracy "
                                          "50.0%  2.0 images/s  data wait 25%  "
                                          "elapsed 0:16  val accuracy 60%\n"));
  EXPECT_EQ(w.progress.images(), 32);
}

TEST(Progress, ALogGetsOneLineAnInterval) {
  Watched w(0);
  for (int epoch = 0; epoch < 100; ++epoch) {  // epochs of 0.3 s each
    w.progress.begin("epoch", 3);
    for (int i = 0; i < 3; ++i) {
      w.time += 0.1;
      w.progress.step({.images = 1, .loss = 1});
    }
    w.progress.end();
  }
  EXPECT_EQ(w.text(), "");
  w.progress.begin("long", 30);
  for (int i = 0; i < 30; ++i) {
    w.time += 1;
    w.progress.step({.images = 1, .loss = 1});
  }
  w.progress.end();
  const std::string text = w.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  w.progress.note("saved");
  EXPECT_THAT(w.text(), testing::EndsWith("\n2026-11-25 03:08:07 rank 3: saved\n"));
}

TEST(Progress, TheDateIsToday) {
  const test::TemporaryFolder folder;
  const auto file =
      std::unique_ptr<std::FILE, int (*)(std::FILE*)>(std::fopen((folder / "log").c_str(), "w"), std::fclose);
  Progress progress({.out = file.get(), .terminal = 0});
  progress.note("here");
  EXPECT_THAT(
      test::read_file(folder / "log"),
      testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9] rank 0: here\n"));
}

TEST(Progress, CountsInItsOwnUnitAndSaysNothingOfAWaitThatNobodyHasMeasured) {
  const test::TemporaryFolder folder;
  const auto file =
      std::unique_ptr<std::FILE, int (*)(std::FILE*)>(std::fopen((folder / "log").c_str(), "w"), std::fclose);
  double time = 0;
  Progress progress({.out = file.get(),
                     .terminal = 0,
                     .unit = "tensors",
                     .clock = [&] { return time; },
                     .date = [] { return std::string("now"); }});
  progress.begin("read", 2);
  time = 20;
  progress.step({.images = 10});
  EXPECT_EQ(test::read_file(folder / "log"), "now rank 0: read  step 1/2  ETA 0:20  0.5 tensors/s  elapsed 0:20\n");
}

TEST(Progress, MakesWayForTheLinesOfOthers) {
  Watched w(1);
  w.progress.begin("epoch 1/1", 2);
  w.progress.make_way();
  EXPECT_THAT(w.text(), testing::EndsWith("\r\033[K"));
  const size_t cleared = w.text().size();
  w.progress.make_way();  // nothing stands there
  EXPECT_EQ(w.text().size(), cleared);
  w.time += 1;
  w.progress.step({.images = 1});
  EXPECT_THAT(w.text(), testing::HasSubstr("1/2"));
  w.progress.drop();
  EXPECT_THAT(w.text(), testing::EndsWith("\r\033[K"));
  const std::string dropped = w.text();
  w.progress.end("what nobody sees");
  EXPECT_EQ(w.text(), dropped);
}

TEST(Progress, PlainLinesAreAscii) {
  Watched w(0);
  w.progress.begin("epoch 1/1", 1);
  w.progress.step({.images = 1, .loss = 1, .correct = 1});
  w.progress.end("val loss 1");
  EXPECT_FALSE(w.text().empty());
  for (const char c : w.text()) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(Progress, TheBarIsRedrawnAndEndsWithANewline) {
  Watched w(1);
  w.progress.begin("epoch 1/1", 10);
  for (int i = 0; i < 10; ++i) {
    w.time += 0.06;  // every second step is due
    w.progress.step({.images = 1, .loss = 1, .correct = 1});
  }
  w.progress.note("a note");
  w.progress.end();
  const std::string text = w.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 1 + 5 + 1 + 1 + 1);  // begin, steps, clear, redraw, end
  EXPECT_THAT(text, testing::HasSubstr("\r\033[Ka note\n"));
  EXPECT_THAT(text, testing::EndsWith("\033[K\n"));
}

TEST(Progress, AFileIsNoTerminal) {
  Watched w(-1);
  w.progress.begin("epoch 1/1", 1);
  w.progress.end("val loss 1");
  EXPECT_FALSE(w.text().empty());
  EXPECT_THAT(w.text(), testing::Not(testing::HasSubstr("\r")));
}

TEST(Progress, MeansAreWeightedByImages) {
  Watched w(0);
  w.progress.begin("e", 2);
  w.progress.step({.images = 30, .loss = 1, .correct = 30});
  w.progress.step({.images = 10, .loss = 5, .correct = 0});
  EXPECT_DOUBLE_EQ(*w.progress.state().loss, 2);
  EXPECT_DOUBLE_EQ(*w.progress.state().accuracy, 0.75);
  w.progress.step({.images = 1, .loss = 0});  // accuracy not known
  EXPECT_FALSE(w.progress.state().accuracy.has_value());
  EXPECT_TRUE(w.progress.state().loss.has_value());
  w.progress.step({.images = 1});  // nor the loss
  EXPECT_FALSE(w.progress.state().loss.has_value());
}

}  // namespace
}  // namespace weft::train
