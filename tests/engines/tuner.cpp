// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/tuner.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "kernels/runtime/kernel_variant.h"
#include "tests/support/error_text.h"

// The tuner with engines and a clock that the test makes up.

namespace weft::kernels::vendor {
namespace {

/// A machine whose candidates take the seconds that they are given. The clock counts its questions.
class Machine {
 public:
  struct Engine {
    Choice choice;
    double seconds;
    bool fails = false;
    int runs = 0;
  };

  explicit Machine(std::vector<Engine> list) : engines(std::move(list)) {}

  std::vector<Candidate> candidates() {
    std::vector<Candidate> all;
    for (Engine& one : engines)
      all.push_back({one.choice, [&] {
                       if (one.fails) fail("out of order");
                       ++one.runs;
                       device_seconds += one.seconds * noise();
                     }});
    return all;
  }
  Stopwatch stopwatch() {
    return [this](const std::function<void()>& run, int repeats) {
      const double start = device_seconds;
      for (int i = 0; i < repeats; ++i) run();
      ++timings;
      return device_seconds - start;
    };
  }

  std::vector<Engine> engines;
  double device_seconds = 0;
  int timings = 0;
  std::function<double()> noise = [] { return 1.0; };
};

constexpr Choice kOwn{Maker::own, 0}, kLt{Maker::cublaslt, 0}, kLt1{Maker::cublaslt, 1}, kDnn{Maker::cudnn, 0};

Problem problem(int64_t n = 64) { return Problem("matmul").add("in", DType::bf16).add("N", n); }

class TunerTest : public testing::Test {
 protected:
  TuneCache none{""};
};

TEST_F(TunerTest, TakesTheFastestAndTimesOnce) {
  Machine machine({{kOwn, 30e-6}, {kLt, 25e-6}, {kLt1, 22e-6}, {kDnn, 23e-6}});
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.known(problem()), std::nullopt);
  const auto candidates = machine.candidates();
  EXPECT_EQ(tuner.choose(problem(), candidates, machine.stopwatch()), kLt1);
  const int timings = machine.timings;
  EXPECT_EQ(tuner.known(problem()), kLt1);
  EXPECT_EQ(tuner.choose(problem(), candidates, machine.stopwatch()), kLt1);
  EXPECT_EQ(machine.timings, timings);
  EXPECT_EQ(tuner.known(problem(65)), std::nullopt);
  // 200 us a sample: 7 runs of 30 us, 10 of 22 us; two runs before, five samples.
  EXPECT_EQ(machine.engines[0].runs, 2 + 5 * 7);
  EXPECT_EQ(machine.engines[2].runs, 2 + 5 * 10);
}

TEST_F(TunerTest, LongRunsAreNotRepeatedInsideASample) {
  Machine machine({{kOwn, 5e-3}, {kLt, 4e-3}});
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), kLt);
  EXPECT_EQ(machine.engines[0].runs, 2 + 5);
}

TEST_F(TunerTest, OwnStaysWhereAnotherWinsByLessThanTwoPercent) {
  for (const auto& [seconds, winner] : {std::pair{0.99e-4, kOwn}, {0.97e-4, kLt}, {1e-4, kOwn}}) {
    Machine machine({{kOwn, 1e-4}, {kLt, seconds}});
    Tuner tuner("m", none);
    EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), winner) << seconds;
  }
}

TEST_F(TunerTest, OneSlowSampleDoesNotDecide) {  // the median holds against two bad samples of five
  Machine machine({{kOwn, 300e-6}, {kLt, 200e-6}});
  int call = 0;
  machine.noise = [&] { return ++call == 6 || call == 8 ? 100.0 : 1.0; };  // two samples of cuBLASLt
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), kLt);
}

TEST_F(TunerTest, NorDoTwoFastOnes) {
  Machine machine({{kOwn, 200e-6}, {kLt, 300e-6}});
  int call = 0;
  machine.noise = [&] { return ++call == 6 || call == 8 ? 0.01 : 1.0; };  // two samples of cuBLASLt
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), kOwn);
}

TEST_F(TunerTest, ALibraryThatFailsIsOut) {
  Machine machine({{kOwn, 30e-6}, {kLt, 1e-6, true}, {kDnn, 20e-6}});
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), kDnn);
}

TEST_F(TunerTest, OurOwnMayNotFail) {
  Machine machine({{kOwn, 30e-6, true}, {kLt, 20e-6}});
  Tuner tuner("m", none);
  EXPECT_EQ(error_text([&] { tuner.choose(problem(), machine.candidates(), machine.stopwatch()); }), "out of order");
  EXPECT_EQ(tuner.known(problem()), std::nullopt);
}

TEST_F(TunerTest, OneCandidateNeedsNoTiming) {
  Machine machine({{kOwn, 30e-6}});
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), kOwn);
  EXPECT_EQ(machine.timings, 0);
}

TEST_F(TunerTest, WithoutAStopwatchOursRunsAndNothingIsKept) {
  Machine machine({{kOwn, 30e-6}, {kLt, 20e-6}});
  Tuner tuner("m", none);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), nullptr), kOwn);
  EXPECT_EQ(tuner.known(problem()), std::nullopt);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), machine.stopwatch()), kLt);
  EXPECT_EQ(tuner.choose(problem(), machine.candidates(), nullptr), kLt);
}

class TunerFile : public testing::Test {
 protected:
  TunerFile()
      : path((std::filesystem::temp_directory_path() / ("weft_tuner_" + std::to_string(std::random_device{}())))
                 .string()) {}
  ~TunerFile() override { std::filesystem::remove_all(path); }
  const std::string path;
};

TEST_F(TunerFile, TheNextProcessTimesNothing) {
  Machine first({{kOwn, 30e-6}, {kLt1, 20e-6}});
  {
    TuneCache cache(path);
    Tuner("H200; driver 580", cache).choose(problem(), first.candidates(), first.stopwatch());
  }
  Machine second({{kOwn, 1e-6}, {kLt1, 20e-6}});  // would choose otherwise
  TuneCache cache(path);
  Tuner tuner("H200; driver 580", cache);
  EXPECT_EQ(tuner.choose(problem(), second.candidates(), second.stopwatch()), kLt1);
  EXPECT_EQ(second.timings, 0);
  // while a graph is captured the file still answers
  Tuner capturing("H200; driver 580", cache);
  EXPECT_EQ(capturing.choose(problem(), second.candidates(), nullptr), kLt1);
}

TEST_F(TunerFile, TheTimesSayWhichKernelsOfOursRan) {
  {
    TuneCache cache(path);
    Machine machine({{kOwn, 30e-6}, {kLt1, 20e-6}});
    auto candidates = machine.candidates();
    const auto run = candidates[0].run;
    candidates[0].run = [run] {
      run();
      kernels::note_kernel_variant("sm90");
    };
    Tuner("m", cache).choose(problem(), candidates, machine.stopwatch());
    EXPECT_STREQ(kernels::noted_kernel_variant(), "");
    Tuner("m", cache).choose(problem(65), machine.candidates(), machine.stopwatch());
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, testing::HasSubstr("\town_sm90 30 us, cublaslt#1 20 us\t"));
  EXPECT_THAT(text, testing::HasSubstr("\town 30 us, cublaslt#1 20 us\t"));
}

TEST_F(TunerFile, AnotherMachineOrProblemIsTimedAnew) {
  TuneCache cache(path);
  Machine machine({{kOwn, 30e-6}, {kLt, 20e-6}});
  Tuner("H200; driver 580", cache).choose(problem(), machine.candidates(), machine.stopwatch());
  for (const auto& [name, size] :
       {std::pair{"A100; driver 580", 64}, {"H200; driver 590", 64}, {"H200; driver 580", 65}}) {
    Machine other({{kOwn, 10e-6}, {kLt, 20e-6}});
    EXPECT_EQ(Tuner(name, cache).choose(problem(size), other.candidates(), other.stopwatch()), kOwn) << name << size;
    EXPECT_GT(other.timings, 0);
  }
}

TEST_F(TunerFile, AWinnerThatIsNoCandidateIsTimedAnew) {
  TuneCache cache(path);
  for (const char* winner : {"cublaslt#7", "cudnn", "nonsense", "own#1", ""}) {
    cache.add("m", problem().text(), winner, "");
    Machine machine({{kOwn, 30e-6}, {kLt, 20e-6}});
    EXPECT_EQ(Tuner("m", cache).choose(problem(), machine.candidates(), machine.stopwatch()), kLt) << winner;
    EXPECT_GT(machine.timings, 0);
    std::filesystem::remove(path);
  }
}

TEST_F(TunerTest, TheFirstAnswerHolds) {  // for a thread whose own timing says otherwise
  Tuner tuner("m", none);
  Machine slower({{kOwn, 30e-6}, {kLt, 20e-6}, {kDnn, 25e-6}}), faster({{kOwn, 30e-6}, {kLt, 25e-6}, {kDnn, 20e-6}});
  const Stopwatch stopwatch = slower.stopwatch();
  const Stopwatch overtaken = [&](const std::function<void()>& run, int repeats) {
    if (!tuner.known(problem())) {
      EXPECT_EQ(tuner.choose(problem(), faster.candidates(), faster.stopwatch()), kDnn);
    }
    return stopwatch(run, repeats);
  };
  EXPECT_EQ(tuner.choose(problem(), slower.candidates(), overtaken), kDnn);
  EXPECT_EQ(tuner.known(problem()), kDnn);
}

TEST_F(TunerTest, ThreadsAgree) {
  Tuner tuner("m", none);
  std::vector<Choice> choices(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < choices.size(); ++i)
    threads.emplace_back([&, i] {  // each thread's clock likes another candidate
      Machine machine({{kOwn, 30e-6}, {kLt, i % 2 ? 20e-6 : 25e-6}, {kDnn, i % 2 ? 25e-6 : 20e-6}});
      choices[i] = tuner.choose(problem(), machine.candidates(), machine.stopwatch());
    });
  for (std::thread& thread : threads) thread.join();
  for (const Choice choice : choices) EXPECT_EQ(choice, tuner.known(problem()));
}

TEST(Choice, TextAndBack) {
  for (const auto& [choice, text] : {std::pair{kOwn, "own"}, {kLt, "cublaslt"}, {Choice{Maker::cudnn, 3}, "cudnn#3"}}) {
    EXPECT_EQ(text_of(choice), text);
    EXPECT_EQ(parse_choice(text), choice);
  }
  for (const char* text : {"", "own#1", "cublaslt#0", "cublaslt#x", "cudnn#-1", "Own", "cudnn#99999999999", "cudnn "})
    EXPECT_EQ(parse_choice(text), std::nullopt) << text;
}

TEST(Problem, IsItsOpNamesAndNumbers) {
  EXPECT_EQ(problem().text(), "matmul in=bf16 N=64");
  EXPECT_EQ(problem(), problem());
  EXPECT_EQ(problem().hash(), problem().hash());
  EXPECT_FALSE(problem() == problem(65));
  EXPECT_NE(problem().hash(), problem(65).hash());
  EXPECT_FALSE(problem() == Problem("conv2d").add("in", DType::bf16).add("N", 64));
  EXPECT_FALSE(problem() == Problem("matmul").add("in", DType::bf16).add("M", 64));
  EXPECT_FALSE(problem() == Problem("matmul").add("in", DType::bf16));
}

}  // namespace
}  // namespace weft::kernels::vendor
