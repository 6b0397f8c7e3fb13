// SPDX-License-Identifier: Apache-2.0
#include "apps/support/run_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string_view>

#include "tests/train/temporary_folder.h"
#include "train/record/event_file.h"
#include "train/record/metrics.h"
#include "train/record/scalar_log.h"

namespace weft::support {
namespace {

using namespace train;

using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::ElementsAre;
namespace fs = std::filesystem;
using namespace std::string_literals;

std::vector<double> values(const RunReader& run, const std::string& name) {
  std::vector<double> out;
  if (const Curve* curve = run.find(name))
    for (const CurvePoint& p : curve->points) out.push_back(p.value);
  return out;
}

TEST(RunReader, RowsOfTrainAndValAreCurvesOfTheirOwn) {
  const TemporaryFolder folder;
  Metrics metrics(folder / "metrics.jsonl");
  for (const int64_t epoch : {1, 2}) {
    const double loss = 1.0 / static_cast<double>(epoch);
    metrics.append(
        {.time = 100.0, .epoch = epoch, .step = 10 * epoch, .loss = loss, .lr = 0.1, .images_per_second = 50});
    metrics.append({.epoch = epoch, .step = 10 * epoch, .split = Split::val, .loss = 2 * loss, .accuracy = 0.5});
  }
  RunReader run(folder.path());
  EXPECT_TRUE(run.refresh());
  EXPECT_FALSE(run.refresh());
  EXPECT_THAT(run.names(), ElementsAre("loss/train", "accuracy/train", "lr", "images_per_second", "data_wait",
                                       "loss/val", "accuracy/val", "images_per_second/val"));
  EXPECT_THAT(values(run, "loss/train"), ElementsAre(1, 0.5));
  EXPECT_THAT(values(run, "loss/val"), ElementsAre(2, 1));
  const CurvePoint first = run.find("loss/train")->points[0];
  EXPECT_EQ(first.step, 10);
  EXPECT_EQ(first.epoch, 1);
  EXPECT_EQ(first.time, 100);
  EXPECT_THAT(run.notes(), ElementsAre());
}

TEST(RunReader, ReadsLightningsTable) {
  const TemporaryFolder folder;
  write_file(folder / "metrics.csv", "epoch,step,train_loss,val_loss\n0,49,0.5,\n0,49,,0.75\n1,99,nan,\n1,99,,0.25\n");
  RunReader run(folder.path());
  EXPECT_TRUE(run.refresh());
  EXPECT_FALSE(run.refresh());
  EXPECT_THAT(run.names(), ElementsAre("train_loss", "val_loss"));
  EXPECT_THAT(values(run, "train_loss"), ElementsAre(0.5, testing::IsNan()));
  EXPECT_THAT(values(run, "val_loss"), ElementsAre(0.75, 0.25));
  EXPECT_EQ(run.find("val_loss")->points[1].step, 99);
  EXPECT_EQ(run.find("val_loss")->points[1].epoch, 1);
  // A new column: Lightning rewrites the file.
  write_file(folder / "metrics.csv", "epoch,lr,step\n0,0.1,49\n");
  fs::last_write_time(folder / "metrics.csv", fs::last_write_time(folder / "metrics.csv") + std::chrono::seconds(1));
  EXPECT_TRUE(run.refresh());
  EXPECT_THAT(run.names(), ElementsAre("lr"));
  const std::string other = folder / "results.csv";  // with blanks, without steps
  write_file(other, "  epoch,   train/loss\n      1,       2.5\n      2,       1.5\n");
  RunReader named(other);
  named.refresh();
  EXPECT_THAT(values(named, "train/loss"), ElementsAre(2.5, 1.5));
  EXPECT_EQ(named.find("train/loss")->points[1].step, 2);
  write_file(folder / "export.csv", "Wall time,Step,Value\n1700000000.5,30,0.5\n");  // TensorBoard's form
  RunReader exported(folder / "export.csv");
  exported.refresh();
  EXPECT_THAT(exported.names(), ElementsAre("Value"));
  EXPECT_EQ(exported.find("Value")->points[0].step, 30);
  EXPECT_EQ(exported.find("Value")->points[0].time, 1700000000.5);
}

TEST(RunReader, ReadsHuggingFacesTrainerState) {
  const TemporaryFolder folder;
  const auto state = [&](const std::string& name, const std::string& history) {
    fs::create_directories(folder / name);
    write_file(folder / (name + "/trainer_state.json"), "{\n  \"log_history\": [" + history + "]\n}\n");
  };
  const std::string first =
      R"({"epoch": 0.5, "step": 5, "loss": 2.0, "grad_norm": NaN}, {"eval_loss": 1.5, "step": 5})";
  state("out/checkpoint-5", first);
  state("out/checkpoint-10", first + R"(, {"epoch": 1.0, "step": 10, "loss": 1.0})");
  EXPECT_THAT(find_runs(folder.path()), ElementsAre(folder / "out"));
  EXPECT_THAT(find_runs(folder / "out"), ElementsAre(folder / "out"));
  EXPECT_THAT(find_runs(folder / "out/checkpoint-5"), ElementsAre(folder / "out/checkpoint-5"));
  RunReader run(folder / "out");
  EXPECT_TRUE(run.refresh());
  EXPECT_THAT(values(run, "loss"), ElementsAre(2, 1));
  EXPECT_THAT(values(run, "eval_loss"), ElementsAre(1.5));
  EXPECT_THAT(values(run, "grad_norm"), ElementsAre(testing::IsNan()));
  write_file(folder / "out/trainer_state.json", "{\"log_hist");
  EXPECT_TRUE(run.refresh());
  EXPECT_THAT(run.notes(),
              ElementsAre((folder / "out/trainer_state.json").string() +
                          ": expected the state of Hugging Face's Trainer (log_history), got another file"s));
  EXPECT_THAT(values(run, "loss"), ElementsAre(2, 1)) << "as they were";
  write_file(folder / "out/metrics.jsonl", "{\"step\": 1, \"loss\": 4}\n");
  RunReader own(folder / "out");
  own.refresh();
  EXPECT_THAT(values(own, "loss"), ElementsAre(4)) << "the run's own file comes first";
}

TEST(RunReader, FollowsARunThatGoesOnAndOneThatResumes) {
  const TemporaryFolder folder;
  RunReader run(folder.path());
  EXPECT_FALSE(run.refresh());  // nothing yet
  {
    ScalarLog log(folder.path());
    log.log(1, {{"val_loss", 3}});
    EXPECT_TRUE(run.refresh());
    log.log(2, {{"val_loss", 2}});
    log.log(3, {{"val_loss", 1}, {"only in the third", 5}});
    EXPECT_TRUE(run.refresh());
    EXPECT_THAT(values(run, "val_loss"), ElementsAre(3, 2, 1));
    EXPECT_EQ(run.find("only in the third")->points[0].step, 3);
    EXPECT_FALSE(run.ended().has_value());
  }
  ScalarLog again(folder.path(), 1);  // the file is replaced by a shorter one
  again.log(2, {{"val_loss", 20}});
  EXPECT_TRUE(run.refresh());
  EXPECT_THAT(values(run, "val_loss"), ElementsAre(3, 20));
  again.end(true);
  run.refresh();
  EXPECT_EQ(run.ended(), true);
  ScalarLog third(folder.path(), 2);
  third.log(3, {{"val_loss", 4}});
  run.refresh();
  EXPECT_FALSE(run.ended().has_value());
  third.end(false);
  run.refresh();
  EXPECT_EQ(run.ended(), false);
}

TEST(RunReader, StepsOfOtherProgramsAndRowsFinerThanEpochs) {
  const TemporaryFolder folder;
  const auto steps = [&](const std::string& text) {
    write_file(folder / "metrics.jsonl", text);
    RunReader run(folder.path());
    run.refresh();
    std::vector<double> all;
    for (const CurvePoint& point : run.find("loss")->points) all.push_back(point.step);
    EXPECT_EQ(run.names().size(), 1u);
    return all;
  };
  for (const std::string name : {"iteration", "iter", "global_step", "_step", "trainer/global_step"}) {
    const std::string rows =
        "{\"epoch\":1,\"" + name + "\":100,\"loss\":3}\n{\"epoch\":1,\"" + name + "\":200,\"loss\":2}";
    EXPECT_THAT(steps(rows), ElementsAre(100, 200)) << name;
  }
  std::string epochs;
  for (const int epoch : {0, 0, 0, 1, 1, 1}) epochs += "{\"epoch\":" + std::to_string(epoch) + ",\"loss\":1}\n";
  EXPECT_THAT(steps(epochs), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(steps("{\"epoch\":1,\"loss\":1}\n{\"epoch\":1,\"loss\":2}\n{\"epoch\":2,\"loss\":2}\n"),
              ElementsAre(1, 2))
      << "an epoch that was made again";
}

TEST(RunReader, ALastLineWithoutItsEndIsReadOnce) {
  const TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", "{\"loss\":3}\n{\"loss\":2}");
  RunReader run(folder.path());
  run.refresh();
  EXPECT_THAT(values(run, "loss"), ElementsAre(3, 2));
  EXPECT_THAT(run.notes(), ElementsAre());
  std::ofstream(folder / "metrics.jsonl", std::ios::app) << "\n{\"loss\":1}\n";
  EXPECT_TRUE(run.refresh());
  EXPECT_THAT(values(run, "loss"), ElementsAre(3, 2, 1));
  EXPECT_EQ(run.find("loss")->points.back().step, 3);
}

// A file of others may be one line without an end, and take no space on the disk.
TEST(RunReader, HoldsNoMoreThanItsLimit) {
  const TemporaryFolder folder;
  write_file(folder / "endless", "");
  fs::resize_file(folder / "endless", uint64_t{1} << 33);
  AppendedFile endless(folder / "endless");
  EXPECT_EQ(endless.refresh(), AppendedFile::Change::grown);
  EXPECT_LT(endless.unread.size(), AppendedFile::kMost + (1 << 16));
  EXPECT_EQ(endless.refresh(), AppendedFile::Change::none);
  // A line longer than the limit is read to its end.
  write_file(folder / "metrics.jsonl",
             "{\"step\":1,\"a\":3}\n" + std::string(AppendedFile::kMost, '\n') + "{\"step\":2,\"a\":4}\n");
  RunReader run(folder.path());
  EXPECT_TRUE(run.refresh());
  EXPECT_THAT(values(run, "a"), ElementsAre(3, 4));
}

TEST(RunReader, EveryKindOfBadLineIsSkippedWithOneNote) {
  const TemporaryFolder folder;
  const std::string path = (folder / "metrics.jsonl").string();
  write_file(path,
             "{\"step\":1,\"loss\":1}\n"
             "not JSON\n"
             "{\"step\":2,\"loss\":NaN}\n"
             "[1,2]\n\n"
             "{\"step\":3,\"loss\":null,\"text\":\"x\",\"flag\":true,\"deep\":{\"a\":1}}\n"
             "\0\xff\xfe\n"
             "{\"step\":\"x\",\"loss\":4}\n"
             "{\"step\":9,\"loss\":0.5}\n"
             "{\"step\":10,\"lo"s);
  RunReader run(folder.path());
  run.refresh();
  ASSERT_EQ(run.names(), std::vector<std::string>{"loss"});
  ASSERT_EQ(run.find("loss")->points.size(), 5u);
  EXPECT_TRUE(std::isnan(run.find("loss")->points[1].value));  // Python's NaN
  EXPECT_TRUE(std::isnan(run.find("loss")->points[2].value));
  EXPECT_EQ(run.find("loss")->points[3].step, 8);  // a step that is no number: the line's number
  EXPECT_THAT(run.notes(),
              ElementsAre(path + ": skipped 4 of 10 lines (line 2 is the first that is no JSON object; the last "
                                 "one is half-written)"));
  std::ofstream(path, std::ios::app) << "ss\":0.25}\n";
  run.refresh();
  EXPECT_EQ(run.find("loss")->last()->value, 0.25);
  EXPECT_THAT(run.notes(), ElementsAre(path + ": skipped 3 of 10 lines (line 2 is the first that is no JSON object)"));
}

// json.dumps of Python writes numbers that JSON lacks; the other numbers of their lines count.
TEST(RunReader, PythonsNumbersAreGaps) {
  const TemporaryFolder folder;
  write_file(folder / "metrics.jsonl",
             "{\"step\": 0, \"loss\": 1.0, \"acc\": 0}\n{\"step\": 1, \"loss\": NaN, \"acc\": 1}\n"
             "{\"step\": 2, \"loss\": Infinity, \"acc\": 2}\n{\"loss\": -Infinity, \"step\": 3, \"acc\": 3}\n"
             "{\"step\": 4, \"loss\": 0.5, \"acc\": 18446744073709551616, \"NaN \\\" Infinity\": 7}\n");
  RunReader run(folder.path());
  run.refresh();
  EXPECT_THAT(run.notes(), ElementsAre());
  EXPECT_THAT(values(run, "acc"), ElementsAre(0, 1, 2, 3, 18446744073709551616.0));
  const std::vector<double> loss = values(run, "loss");
  ASSERT_EQ(loss.size(), 5u);
  for (const size_t i : {1, 2, 3}) EXPECT_TRUE(std::isnan(loss[i])) << i;
  EXPECT_EQ(loss[4], 0.5);
  EXPECT_THAT(values(run, "NaN \" Infinity"), ElementsAre(7));  // a name is left alone
}

TEST(RunReader, ALineOfManyNamesTakesNoLonger) {
  const TemporaryFolder folder;
  std::string line = "{\"step\":1";
  constexpr int kNames = 200'000;
  for (int i = kNames; i > 0; --i) line += str(",\"n", i, "\":", i);
  write_file((folder / "metrics.jsonl").string(), line + ",\"n1\":7}\n");
  RunReader run(folder.path());
  const auto begin = std::chrono::steady_clock::now();
  run.refresh();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60))
      << "in the square of their number: minutes";
  ASSERT_EQ(run.names().size(), static_cast<size_t>(kNames));
  EXPECT_EQ(run.names()[0], str("n", kNames)) << "in the order of the line";
  EXPECT_EQ(run.find("n1")->last()->value, 7);
}

TEST(RunReader, EventFilesGiveWhatTheLinesLack) {
  const TemporaryFolder folder;
  {
    Metrics metrics(folder / "metrics.jsonl");
    metrics.append({.epoch = 1, .step = 5, .loss = 7});
    TensorBoard board(folder.path());
    board.scalar("loss/train", 1, 5);
    board.scalar("train/grad_norm", 2.5, 5);
    board.hyper_parameters({{"lr", 0.1}});
    board.scalar("train/grad_norm", 3.5, 6);
  }
  RunReader run(folder.path());
  run.refresh();
  EXPECT_THAT(values(run, "loss/train"), ElementsAre(7));
  EXPECT_THAT(values(run, "train/grad_norm"), ElementsAre(2.5, 3.5));
  EXPECT_GT(run.find("train/grad_norm")->points[0].time, 1.6e9);
}

TEST(RunReader, AResumedEventFileTakesPointsBack) {
  const TemporaryFolder folder;
  TensorBoard first(folder.path());
  for (const int64_t step : {1, 2, 3, 4}) first.scalar("loss", static_cast<double>(step), step);
  TensorBoard second(folder.path(), 2);
  second.scalar("loss", 30, 3);
  RunReader run(folder.path());
  run.refresh();
  EXPECT_THAT(values(run, "loss"), ElementsAre(1, 2, 30));
}

TEST(RunReader, ADamagedEventFileIsReadUpToThere) {
  const TemporaryFolder folder;
  fs::path path;
  {
    TensorBoard board(folder.path());
    path = board.path();
    board.scalar("loss", 1, 1);
    board.scalar("loss", 2, 2);
  }
  std::string bytes = read_file(path);
  bytes[bytes.size() - 6] ^= 1;
  write_file(path, bytes);
  RunReader run(path);
  run.refresh();
  EXPECT_THAT(values(run, "loss"), ElementsAre(1));
  EXPECT_THAT(run.notes(), ElementsAre(path.string() + ": damaged, read up to there"));
}

TEST(RunReader, EveryCutOfAnEventFileIsAHalfRecord) {
  const TemporaryFolder folder;
  fs::path path;
  {
    TensorBoard board(folder.path());
    path = board.path();
    board.scalar("loss", 1, 1);
  }
  const std::string bytes = read_file(path);
  std::set<size_t> ends{0};  // ends of whole records
  std::string_view rest = bytes, record;
  while (take_event_record(rest, record) == RecordState::whole) ends.insert(bytes.size() - rest.size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_file(folder / "cut.tfevents.1", bytes.substr(0, size));
    RunReader run(folder / "cut.tfevents.1");
    run.refresh();
    EXPECT_TRUE(run.names().empty());
    const std::vector<std::string> half{(folder / "cut.tfevents.1").string() + ": the last record is half-written"};
    EXPECT_EQ(run.notes(), ends.contains(size) ? std::vector<std::string>{} : half) << size;
    std::ofstream(folder / "cut.tfevents.1", std::ios::app | std::ios::binary) << bytes.substr(size);
    run.refresh();
    EXPECT_THAT(values(run, "loss"), ElementsAre(1)) << size;
  }
}

// Records whose checksums fit and whose messages are damaged: what is read may be wrong, but nothing outside of them
// is.
TEST(RunReader, DamagedMessagesDoNoHarm) {
  const TemporaryFolder folder;
  fs::path path;
  {
    TensorBoard board(folder.path());
    path = board.path();
    board.scalar("loss", 1, 1);
    board.hyper_parameters({{"lr", 0.1}, {"model", "cnn"}});
    board.end(true);
  }
  const std::string bytes = read_file(path);
  std::vector<std::string> messages;
  std::string_view rest = bytes, message;
  while (take_event_record(rest, message) == RecordState::whole) messages.emplace_back(message);
  ASSERT_EQ(messages.size(), 5u);
  std::mt19937 random(std::random_device{}());
  std::string damaged;
  for (int i = 0; i < 20000; ++i) {
    std::string one = messages[random() % messages.size()];
    for (size_t flips = random() % 4; flips-- > 0;) one[random() % one.size()] = static_cast<char>(random());
    damaged += event_record(std::string_view(one).substr(0, one.size() - random() % 3));
  }
  write_file(folder / "damaged.tfevents.1", damaged);
  RunReader run(folder / "damaged.tfevents.1");
  run.refresh();
  EXPECT_THAT(run.notes(), ElementsAre());  // every record was whole
}

TEST(FindRuns, InTheOrderOfNumbers) {
  const TemporaryFolder folder;
  for (const char* name : {"sweep/run10", "sweep/run2", "sweep/deep/er", "sweep/empty"})
    fs::create_directories(folder / name);
  for (const char* name : {"sweep/run10", "sweep/run2"}) write_file(folder / name / "metrics.jsonl", "");
  write_file(folder / "sweep/deep/er/events.out.tfevents.1.h", "");
  fs::create_directory_symlink(folder / "sweep", folder / "sweep/empty/loop");
  std::filesystem::create_directories(folder.path() / "sweep/.ipynb_checkpoints");
  write_file(folder / "sweep/.ipynb_checkpoints/metrics.jsonl", "{}\n");
  EXPECT_THAT(find_runs(folder / "sweep"),
              ElementsAre(folder / "sweep/deep/er", folder / "sweep/run2", folder / "sweep/run10"));
  EXPECT_THAT(find_runs(folder / "sweep/run2"), ElementsAre(folder / "sweep/run2"));
  EXPECT_THAT(find_runs(folder / "sweep/run2/metrics.jsonl"), ElementsAre(folder / "sweep/run2/metrics.jsonl"));
  EXPECT_THAT(find_runs(folder / "none"), ElementsAre());
}

// PyTorch's add_scalars("loss", {"train": …, "val": …}) writes folders loss_train and loss_val below the run's.
TEST(FindRuns, RunsBelowARun) {
  const TemporaryFolder folder;
  for (const char* name : {"tb/loss_train", "tb/loss_val", "tb/checkpoint"}) fs::create_directories(folder / name);
  for (const char* name : {"tb", "tb/loss_train", "tb/loss_val"})
    write_file(folder / name / "events.out.tfevents.1.h", "");
  EXPECT_THAT(find_runs(folder / "tb"), ElementsAre(folder / "tb", folder / "tb/loss_train", folder / "tb/loss_val"));
}

TEST(FindRuns, FractionsAreNoWholeNumbers) {
  const TemporaryFolder folder;
  for (const char* name : {"lr0.1", "lr0.05", "lr10", "lr0.015"}) {
    fs::create_directories(folder / name);
    write_file(folder / name / "metrics.jsonl", "");
  }
  EXPECT_THAT(find_runs(folder.path()),
              ElementsAre(folder / "lr0.015", folder / "lr0.05", folder / "lr0.1", folder / "lr10"));
}

TEST(RunConfig, OfYamlAndToml) {
  const TemporaryFolder folder;
  EXPECT_THAT(read_run_config(folder.path()), ElementsAre());
  write_file(folder / "config.toml", "# of a run\nlr = 0.1\nmodel = \"resnet18\"\n\n");
  using Entry = std::pair<std::string, std::string>;
  EXPECT_THAT(read_run_config(folder.path()), ElementsAre(Entry("lr", "0.1"), Entry("model", "resnet18")));
  ScalarLog(folder.path()).config({{"lr", 1e-5}, {"a: b", "x: y"}, {"amp", true}});
  EXPECT_THAT(read_run_config(folder.path()),
              ElementsAre(Entry("lr", "1.0e-05"), Entry("a: b", "x: y"), Entry("amp", "true")));
}

}  // namespace
}  // namespace weft::support
