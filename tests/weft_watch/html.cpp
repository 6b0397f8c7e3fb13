// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "apps/support/html_chart.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"
#include "train/record/scalar_log.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

void make_run(const std::string& folder, const train::HyperParameters& config, int64_t steps, double start) {
  train::ScalarLog log(folder);
  log.config(config);
  for (int64_t step = 1; step <= steps; ++step)
    log.log(step, {{"val_loss", step % 7 == 3 ? std::nan("") : start / static_cast<double>(step)}, {"grad", -1}});
  log.end(true);
}

std::string page_of(const TemporaryFolder& folder, const std::string& arguments) {
  const Outcome made = shell(std::string(WEFT_WATCH) + ' ' + arguments + " --html " + (folder / "page.html"));
  EXPECT_EQ(made.exit_code, 0) << made.output;
  return read_text(folder / "page.html");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

TEST(Html, LoadsNothingAndRunsNothing) {
  const TemporaryFolder folder;
  make_run(folder / "a", {{"lr", 1e-5}, {"model", "cnn"}}, 20, 1);
  make_run(folder / "b", {{"lr", 1e-4}, {"model", "cnn"}}, 20, 2);
  const std::string page = page_of(folder, (folder / "a") + ' ' + (folder / "b"));
  for (const char* part : {"http:", "https:", "//", "<script", "src=", "url(", "@import", "<link", "onload"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_EQ(count(page, "<figure>"), 2u);  // every curve, not only the losses
  EXPECT_EQ(count(page, "<svg class=linear"), 2u);
  EXPECT_EQ(count(page, "<svg class=log"), 1u);  // grad is negative
  EXPECT_THAT(page, HasSubstr("a log scale shows what is positive"));
  EXPECT_THAT(page, HasSubstr("<th>lr<th>"));  // the differing setting
  EXPECT_THAT(page, Not(HasSubstr("<th>model")));
  EXPECT_THAT(page, HasSubstr("0.05 <small>best 0.05 at 20</small>"));
}

TEST(Html, GapsBreakTheLine) {
  const TemporaryFolder folder;
  make_run(folder / "a", {}, 20, 1);
  const std::string page = page_of(folder, (folder / "a") + " --metrics val_loss");
  std::smatch path;
  ASSERT_TRUE(std::regex_search(page, path, std::regex("<path class=\"line\" d=\"([^\"]*)\"/>")));
  EXPECT_EQ(count(path[1], "M"), 4u);  // gaps at 3, 10 and 17
  EXPECT_EQ(count(path[1], "M") + count(path[1], "L"), 17u);
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(Html, ThousandsOfPointsAreThinned) {
  const TemporaryFolder folder;
  make_run(folder / "a", {}, 20000, 1);
  const std::string page = page_of(folder, (folder / "a") + " --metrics val_loss");
  EXPECT_LT(page.size(), 120'000u);
  EXPECT_GT(page.size(), 10'000u);
}

TEST(Html, SmoothDrawsBothCurves) {
  const TemporaryFolder folder;
  make_run(folder / "a", {}, 20, 1);
  const std::string page = page_of(folder, (folder / "a") + " --metrics val_loss --smooth 0.6 --log");
  EXPECT_EQ(count(page, "class=\"raw\""), 2u);  // linear and log
  EXPECT_EQ(count(page, "class=\"line\""), 2u);
  EXPECT_THAT(page, HasSubstr("id=log checked"));
  EXPECT_THAT(page, HasSubstr("(smooth 0.6)"));
}

TEST(Html, NamesAreText) {
  const TemporaryFolder folder;
  train::ScalarLog(folder / "<b>&").log(1, {{"<script>alert(1)</script>", 1}, {"\xff\x01", 2}});
  const std::string page = page_of(folder, "'" + (folder / "<b>&") + "'");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<b>&")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_EQ(support::html_text("a\"'<>&\xff"), "a&quot;&#39;&lt;&gt;&amp;\xEF\xBF\xBD");
}

TEST(Html, TwentyRunsHaveColoursAndDashes) {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) make_run(folder / ("runs/" + std::to_string(i)), {}, 5, i + 1);
  const std::string page = page_of(folder, folder / "runs");
  EXPECT_THAT(page, HasSubstr("svg .run19 .line { stroke-dasharray: 7 4; }"));
  EXPECT_THAT(page, HasSubstr("#show19:not(:checked) ~ main .run19"));
  EXPECT_THAT(page, Not(HasSubstr("svg .run9 .line")));
}

TEST(Html, FollowLoadsAgainUntilAllHaveEnded) {
  const TemporaryFolder folder;
  make_run(folder / "a", {}, 5, 1);
  EXPECT_THAT(page_of(folder, (folder / "a") + " --follow"), Not(HasSubstr("http-equiv")));  // it has ended
}

}  // namespace
}  // namespace weft::tests
