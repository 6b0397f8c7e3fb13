// SPDX-License-Identifier: Apache-2.0
#include "train/record/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

MetricRow row(int64_t step) {
  return {.time = 1.5, .epoch = 1, .step = step, .loss = 0.25, .accuracy = 0.5, .lr = 0.1};
}

TEST(Metrics, OneObjectALine) {
  const TemporaryFolder folder;
  Metrics metrics(folder / "metrics.jsonl");
  metrics.append({.time = 1.5,
                  .epoch = 2,
                  .step = 30,
                  .split = Split::val,
                  .loss = 0.25,
                  .accuracy = 0.5,
                  .lr = 0.1,
                  .images_per_second = 100,
                  .data_wait = 0.125});
  EXPECT_EQ(read_file(folder / "metrics.jsonl"),
            R"({"time":1.5,"epoch":2,"step":30,"split":"val","loss":0.25,"accuracy":0.5,"lr":0.1,)"
            R"("images_per_second":100.0,"data_wait":0.125})"
            "\n");
}

TEST(Metrics, WritesWhatIsThere) {
  const auto json = nlohmann::json::parse(to_json({.gradient_norm = 1.5, .peak_tensor_bytes = 4096}));
  EXPECT_EQ(json["gradient_norm"], 1.5);
  EXPECT_EQ(json["peak_tensor_bytes"], 4096);
  EXPECT_FALSE(nlohmann::json::parse(to_json({})).contains("gradient_norm"));
}

TEST(Metrics, FillsInTheTimeAndWritesNaNAsNull) {
  const auto json = nlohmann::json::parse(to_json({.step = 1, .loss = std::nan("")}));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["split"], "train");
  const TemporaryFolder folder;
  Metrics(folder / "m").append({});
  EXPECT_GT(nlohmann::json::parse(read_file(folder / "m"))["time"].get<double>(), 1.6e9);
}

TEST(Metrics, Appends) {
  const TemporaryFolder folder;
  Metrics(folder / "m").append(row(1));
  Metrics(folder / "m").append(row(2));
  EXPECT_EQ(read_file(folder / "m"), to_json(row(1)) + "\n" + to_json(row(2)) + "\n");
}

TEST(Metrics, ResumeDropsLaterLinesAndAHalfLine) {
  const TemporaryFolder folder;
  const std::string foreign = "# a line of somebody else\n";
  write_file(folder / "m",
             to_json(row(10)) + "\n" + foreign + to_json(row(20)) + "\n" + to_json(row(30)) + "\n{\"time\":1");
  Metrics metrics(folder / "m", 20);
  EXPECT_EQ(read_file(folder / "m"), to_json(row(10)) + "\n" + foreign + to_json(row(20)) + "\n");
  metrics.append(row(25));
  EXPECT_THAT(read_file(folder / "m"), testing::EndsWith(to_json(row(25)) + "\n"));
}

TEST(Metrics, ResumeTakesAnyNumberForAStep) {
  const TemporaryFolder folder;
  write_file(folder / "m", "{\"step\": 1e300}\n{\"step\": -1e300}\n{\"step\": 18446744073709551615}\n{\"step\": 2}\n");
  const Metrics metrics(folder / "m", 2);
  EXPECT_EQ(read_file(folder / "m"), "{\"step\": -1e300}\n{\"step\": 2}\n");
}

// Python's NaN is no JSON, yet such a line has a step.
TEST(Metrics, ResumeDropsLaterLinesWithPythonsNumbers) {
  const TemporaryFolder folder;
  write_file(folder / "m",
             "{\"step\": 1, \"loss\": NaN}\n{\"loss\": -Infinity, \"step\": 3}\n{\"step\": 4, \"loss\": NaN}\n");
  const Metrics metrics(folder / "m", 2);
  EXPECT_EQ(read_file(folder / "m"), "{\"step\": 1, \"loss\": NaN}\n");
}

// Another user of the folder may have put it there: its file is neither read, nor appended to, nor made.
TEST(Metrics, APipeIsNotWaitedFor) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "metrics.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { Metrics all(pipe); }), "metrics: expected a file, got a pipe: " + pipe.string());
}

TEST(Metrics, ALinkIsNotFollowed) {
  const TemporaryFolder folder;
  for (const bool exists : {true, false}) {
    if (exists)
      write_file(folder / "outside", "a secret without a line break");
    else
      std::filesystem::remove_all(folder / "outside");
    std::filesystem::remove(folder / "metrics.jsonl");
    std::filesystem::create_symlink(folder / "outside", folder / "metrics.jsonl");
    EXPECT_EQ(error_of([&] { Metrics(folder / "metrics.jsonl", 3); }),
              "metrics: expected a file, got a link: " + (folder / "metrics.jsonl").string());
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "metrics.jsonl"));
    EXPECT_EQ(std::filesystem::exists(folder / "outside"), exists);
    if (exists) {
      EXPECT_EQ(read_file(folder / "outside"), "a secret without a line break");
    }
  }
}

TEST(Metrics, ResumeWithoutAFileStartsOne) {
  const TemporaryFolder folder;
  Metrics(folder / "m", 20).append(row(21));
  EXPECT_EQ(read_file(folder / "m"), to_json(row(21)) + "\n");
}

TEST(Metrics, Errors) {
  const TemporaryFolder folder;
  const std::string path = (folder / "none/m").string();
  EXPECT_EQ(error_of([&] { Metrics metrics(path); }),
            "metrics: expected to open " + path + ", got 'No such file or directory'");
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  EXPECT_EQ(
      error_of([&] { Metrics("/dev/full").append(row(1)); }),
      "metrics: expected to append a line to /dev/full, got 'No space left on device'. Free some space and resume");
}

}  // namespace
}  // namespace weft::train
