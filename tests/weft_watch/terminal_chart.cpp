// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/terminal_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::weft_watch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
constexpr double kGap = support::CurvePoint::kUnknown;

Trace trace(size_t run, const std::vector<double>& values) {
  Trace out{.run = run, .raw = {}, .smooth = {}};
  for (size_t i = 0; i < values.size(); ++i) out.raw.push_back({static_cast<double>(i), values[i]});
  return out;
}

std::string all(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

TEST(TerminalChart, PlainAscii) {
  const Chart chart{"loss/val", {trace(0, {4, 3, 2, 1, 0}), trace(1, {0, kGap, 2, kGap, 4})}};
  const Style style{.width = 24, .height = 5};
  EXPECT_EQ(all(draw_chart(chart, "step", false, style)),
            "loss/val                \n"
            " 4+***                 +\n"
            "  |   *****             \n"
            " 2+        **+**        \n"
            "  |             *****   \n"
            " 0++                 ***\n"
            "  ++---------+---------+\n"
            "   0         2      step\n");
}

TEST(TerminalChart, EveryLineIsAsWideAsAsked) {
  const Chart chart{"a name that is too long for a narrow chart", {trace(0, {1e-9, 2e-9})}};
  for (const int width : {24, 40, 121})
    for (const bool braille : {false, true})
      for (const std::string& line :
           draw_chart(chart, "step", false, {.width = width, .height = 4, .braille = braille, .utf8 = braille}))
        EXPECT_EQ(columns_of(line), width) << line;
}

TEST(TerminalChart, BrailleDots) {
  Canvas canvas(2, 1, {.braille = true, .utf8 = true});
  canvas.line(0, 3, 3, 0, 0);
  EXPECT_EQ(canvas.row(0), "⡠⠊");
  canvas.dot(-1, 0, 0);
  canvas.dot(4, 0, 0);
  canvas.dot(0, 4, 0);
  EXPECT_EQ(canvas.row(0), "⡠⠊");
}

TEST(TerminalChart, ColorsTellTheRuns) {
  Canvas canvas(2, 1, {.braille = true, .utf8 = true, .color = true});
  canvas.dot(0, 0, 0);
  canvas.dot(2, 0, 1);
  EXPECT_EQ(canvas.row(0), "\033[38;5;33m⠁\033[0m\033[38;5;208m⠁\033[0m");
}

TEST(TerminalChart, NoPeakIsLost) {
  std::vector<double> values(20000, 1.0);
  values[12345] = 9;
  const auto lines = draw_chart({"loss", {trace(0, values)}}, "step", false, {.width = 60, .height = 8});
  EXPECT_THAT(lines[1], HasSubstr("*"));
}

TEST(TerminalChart, LogScaleLeavesOutWhatIsNotPositive) {
  const Chart chart{"loss", {trace(0, {100, 10, 0, -5, 1})}};
  const auto lines = draw_chart(chart, "step", true, {.width = 40, .height = 5});
  EXPECT_THAT(lines[0], HasSubstr("loss (log)"));
  EXPECT_THAT(lines[1], HasSubstr("100+*"));
  EXPECT_THAT(lines[3], HasSubstr("10+"));
  EXPECT_THAT(lines[5], HasSubstr("1+"));
  EXPECT_THAT(all(draw_chart({"loss", {trace(0, {0, -1})}}, "step", true, {.width = 40, .height = 5})),
              HasSubstr("no numbers to draw"));
}

TEST(TerminalChart, OnePointAndNone) {
  const auto one = draw_chart({"loss", {trace(0, {3})}}, "step", false, {.width = 40, .height = 5});
  EXPECT_THAT(all(one), HasSubstr("*"));
  EXPECT_THAT(all(draw_chart({"loss", {trace(0, {kGap})}}, "step", false, {.width = 40, .height = 5})),
              HasSubstr("no numbers to draw"));
}

TEST(TerminalChart, Fit) {
  EXPECT_EQ(fit("Jülich", 3), "Jül");
  EXPECT_EQ(fit("Jülich", 8), "Jülich  ");
  EXPECT_EQ(fit("", 0), "");
}

}  // namespace
}  // namespace weft::weft_watch
