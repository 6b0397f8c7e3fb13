// SPDX-License-Identifier: Apache-2.0
#include "train/record/scalar_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/shell.h"
#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

using nlohmann::json;
using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

std::vector<json> lines(const std::filesystem::path& path) {
  std::vector<json> out;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

TEST(ScalarLog, OneObjectALine) {
  const TemporaryFolder folder;
  ScalarLog log(folder / "expts/default/0");
  log.log(1, {{"train_loss", 0.25}, {"val_loss", std::nan("")}, {"grad", HUGE_VAL}});
  log.log(2, {{"validation accuracy", 88.5}});
  const std::string text = read_file(folder / "expts/default/0/metrics.jsonl");
  EXPECT_THAT(text, testing::MatchesRegex("\\{\"step\":1,\"time\":[0-9.]+,\"train_loss\":0.25,\"val_loss\":null,"
                                          "\"grad\":null\\}\n\\{\"step\":2,\"time\":[0-9.]+,"
                                          "\"validation accuracy\":88.5\\}\n"));
  EXPECT_GT(lines(folder / "expts/default/0/metrics.jsonl")[0]["time"].get<double>(), 1.6e9);
}

TEST(ScalarLog, AnEventFileHasTheSameNames) {
  const TemporaryFolder folder;
  {
    ScalarLog log(folder.path());
    log.config({{"lr", 1e-3}});
    log.log(7, {{"train_loss", 0.25}});
    if (have_png()) log.image("vis", Canvas(4, 4), 7);
    log.end(true);
  }
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) events += read_file(entry.path());
  for (const char* text : {"train_loss", "_hparams_/session_start_info", "_hparams_/session_end_info"})
    EXPECT_THAT(events, testing::HasSubstr(text));
  EXPECT_EQ(events.find("vis") != std::string::npos, have_png());
}

TEST(ScalarLog, ConfigIsOneValueAKey) {
  const TemporaryFolder folder;
  ScalarLog(folder.path()).config({{"lr", 1e-5}, {"batch_size", 32.0}, {"amp", true}, {"scheduler", "none"}});
  EXPECT_EQ(read_file(folder / "config.yaml"),
            "wandb_version: 1\n"
            "\nlr:\n  value: 1.0e-05\n"
            "\nbatch_size:\n  value: 32\n"
            "\namp:\n  value: true\n"
            "\nscheduler:\n  value: \"none\"\n");
}

// PyYAML (wandb's reader) returns texts and keys that look like something else.
TEST(ScalarLog, PyYamlReadsTheConfig) {
  const std::string python = "/usr/bin/python3 ";
  if (tests::shell(python + "-c 'import yaml'").exit_code != 0)
    GTEST_SKIP() << "NOT TESTED against PyYAML: install python3-yaml to do so";
  const TemporaryFolder folder;
  const HyperParameters values{{"lr", 1e-5},
                               {"big", 1e300},
                               {"steps", 30000.0},
                               {"no", "yes"},
                               {"text", "1e-5"},
                               {"colon: here", "a: b # c"},
                               {"quotes", "\"' \\ \n\t\x01\x7f"},
                               {"unicode", "Jülich 東京 😀 \u0085\u2028\ufeff"},
                               {"empty", ""},
                               {"flag", false},
                               {"12", "date 2024-01-01"}};
  ScalarLog(folder.path()).config(values);
  write_file(folder / "read.py",
             "import json, sys, yaml\n"
             "c = yaml.safe_load(open(sys.argv[1], encoding='utf-8'))\n"
             "assert c.pop('wandb_version') == 1\n"
             "print(json.dumps({k: v['value'] for k, v in c.items()}))\n");
  const auto got = tests::shell(python + (folder / "read.py").string() + ' ' + (folder / "config.yaml").string());
  ASSERT_EQ(got.exit_code, 0) << got.output;
  const json read = json::parse(got.output);
  EXPECT_EQ(read.size(), values.size());
  for (const auto& [key, value] : values) std::visit([&](const auto& v) { EXPECT_EQ(read[key], v) << key; }, value);
}

TEST(ScalarLog, ResumeDropsLaterLinesAndAHalfLine) {
  const TemporaryFolder folder;
  {
    ScalarLog log(folder.path());
    for (const int64_t step : {1, 2, 3}) log.log(step, {{"loss", static_cast<double>(step)}});
  }
  write_file(folder / "metrics.jsonl", read_file(folder / "metrics.jsonl") + "{\"step\":4,\"lo");
  {
    ScalarLog log(folder.path(), 2);
    log.log(3, {{"loss", 30}});
  }
  const auto all = lines(folder / "metrics.jsonl");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1]["step"], 2);
  EXPECT_EQ(all[2]["loss"], 30);
}

TEST(ScalarLog, ANewRunAppendsBehindWholeLines) {
  const TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", "{\"step\":9}\n{\"step\":10,");
  ScalarLog(folder.path()).log(1, {{"loss", 1}});
  const auto all = lines(folder / "metrics.jsonl");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["step"], 9);
  EXPECT_EQ(all[1]["step"], 1);
}

TEST(ScalarLog, NamesThatAreNotUtf8AreLoggedStill) {
  const TemporaryFolder folder;
  ScalarLog(folder.path()).log(1, {{"l\xffss", 1}});
  EXPECT_EQ(lines(folder / "metrics.jsonl")[0]["l\xEF\xBF\xBDss"], 1);
}

TEST(ScalarLog, Errors) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  EXPECT_EQ(error_of([&] { ScalarLog log(folder / "file"); }),
            "run folder: expected a folder, got the file " + (folder / "file").string());
  ScalarLog log(folder.path());
  EXPECT_EQ(error_of([&] {
              log.log(1, {{"loss", 1}, {"loss", 2}});
            }),
            "scalar log: expected each name once and none called step or time, got 'loss' again");
  EXPECT_EQ(error_of([&] {
              log.log(1, {{"step", 1}});
            }),
            "scalar log: expected each name once and none called step or time, got 'step' again");
}

// A limit on the size of files stands for a full disk.
TEST(ScalarLog, AFullDiskIsAnError) {
  const TemporaryFolder folder;
  ScalarLog log(folder.path());
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{4, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = error_of([&] { log.log(1, {{"loss", 1}}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(text, "metrics: expected to append a line to " + (folder / "metrics.jsonl").string() +
                      ", got 'disk full'. Free some space and resume");
}

}  // namespace
}  // namespace weft::train
