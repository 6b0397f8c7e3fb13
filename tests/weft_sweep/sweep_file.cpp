// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "apps/support/yaml_tree.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace weft::weft_sweep {
namespace {

using testing::ElementsAre;
using Kind = Parameter::Kind;

class SweepFiles : public testing::Test {
 protected:
  SweepFiles() : path_(folder_ / "sweep.yaml") {}
  void SetUp() override {
    if (!support::have_yaml()) GTEST_SKIP() << "needs a build with yaml-cpp; this one has its stub";
  }
  SweepFile read(const std::string& yaml) const {
    std::ofstream(path_) << yaml;
    return read_sweep_file(path_);
  }
  std::string error(const std::string& yaml) const {
    const std::string text = error_text([&] { read(yaml); });
    return text.starts_with(path_) ? text.substr(path_.size()) : text;
  }
  tests::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(SweepFiles, AsWandbsUsersWriteThem) {
  const SweepFile grid = read(R"(
program: train_multi_gpu
method: grid
metric:
  goal: minimize
  name: val_loss
parameters:
  lr:
    values: [1E-5, 5E-5, 1E-4]
  batch_size: {values: [16, 32]}
  epochs: {value: 10}
)");
  EXPECT_EQ(grid.method, "grid");
  EXPECT_EQ(grid.metric, "val_loss");
  EXPECT_EQ(grid.goal, "min");
  ASSERT_EQ(grid.parameters.size(), 3u);
  EXPECT_EQ(grid.parameters[0].name, "lr");
  EXPECT_THAT(grid.parameters[0].values, ElementsAre("1E-5", "5E-5", "1E-4"));
  EXPECT_THAT(grid.parameters[2].values, ElementsAre("10"));

  const SweepFile random = read(R"(
method: random
run_cap: 20
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-5, max: 1.0e-1}
  dropout: {min: 0.0, max: 0.5}
  depth: {min: 2, max: 8}
  width: {distribution: uniform, min: 2, max: 8}
)");
  EXPECT_EQ(random.run_cap, 20);
  const auto kind = [&](size_t i) { return random.parameters[i].kind; };
  EXPECT_EQ(kind(0), Kind::log_uniform);
  EXPECT_EQ(random.parameters[0].low, 1e-5);
  EXPECT_EQ(kind(1), Kind::uniform);
  EXPECT_EQ(kind(2), Kind::whole);
  EXPECT_EQ(kind(3), Kind::uniform);
  EXPECT_EQ(random.min_iter, 0);

  const SweepFile bayes = read(
      "method: bayes\nearly_terminate: {type: hyperband, min_iter: 4, eta: 2}\n"
      "parameters: {lr: {min: 0.1, max: 0.2}}");
  EXPECT_EQ(bayes.method, "bayes");
  EXPECT_EQ(bayes.min_iter, 4);
  EXPECT_EQ(bayes.eta, 2);
}

// Each distribution of wandb's, by the ends of its draws.
TEST_F(SweepFiles, Distributions) {
  const auto one = [&](const std::string& about) { return read("parameters: {p: {" + about + "}}").parameters.at(0); };
  const auto expect = [&](const std::string& about, Kind kind, double low, double high, double step) {
    const Parameter p = one(about);
    EXPECT_EQ(p.kind, kind) << about;
    EXPECT_DOUBLE_EQ(p.low, low) << about;
    EXPECT_DOUBLE_EQ(p.high, high) << about;
    EXPECT_EQ(p.step, step) << about;
  };
  expect("distribution: log_uniform, min: -11, max: -2", Kind::log_uniform, std::exp(-11), std::exp(-2), 0);
  expect("distribution: inv_log_uniform, min: 2, max: 11", Kind::log_uniform, std::exp(-11), std::exp(-2), 0);
  expect("distribution: inv_log_uniform_values, min: 0.01, max: 0.5", Kind::log_uniform, 0.01, 0.5, 0);
  expect("distribution: q_log_uniform_values, min: 32, max: 256, q: 8", Kind::log_uniform, 32, 256, 8);
  expect("distribution: q_log_uniform, min: 0, max: 5", Kind::log_uniform, 1, std::exp(5), 1);
  expect("distribution: q_uniform, min: 0, max: 1, q: 0.25", Kind::uniform, 0, 1, 0.25);
  expect("distribution: int_uniform, min: 1, max: 4", Kind::whole, 1, 4, 0);
  EXPECT_THAT(one("distribution: constant, value: 7").values, ElementsAre("7"));
  EXPECT_THAT(one("distribution: categorical, values: [a, b]").values, ElementsAre("a", "b"));
  const SweepFile weighted = read("method: random\nparameters: {p: {values: [a, b], probabilities: [0.9, 0.1]}}");
  EXPECT_THAT(weighted.parameters.at(0).weights, ElementsAre(0.9, 0.1));
  // The ends are exponents: 0.0001 to 0.1 is hardly what was meant.
  EXPECT_THAT(
      read("parameters: {lr: {distribution: log_uniform, min: 0.0001, max: 0.1}}").notes,
      ElementsAre(testing::HasSubstr("lr: log_uniform draws from e^0.0001 to e^0.1. log_uniform_values takes")));

  const auto wrong = [&](const std::string& about) { return error("parameters: {p: {" + about + "}}"); };
  EXPECT_THAT(wrong("distribution: normal, mu: 0, sigma: 1"),
              testing::HasSubstr(":1: distribution: unknown value 'normal'. "));
  EXPECT_EQ(wrong("mu: 0"), ":1: unknown key 'mu'. Known: value, values, min, max, distribution, probabilities, q.");
  EXPECT_EQ(wrong("distribution: uniform, values: [1]"), ":1: p: distribution uniform: expected min and max");
  EXPECT_EQ(wrong("distribution: constant, min: 0, max: 1"), ":1: p: distribution constant: expected value or values");
  EXPECT_EQ(wrong("min: 0.0, max: 1.0, q: 0.1"), ":1: p: q: expected a distribution q_…, got uniform");
  EXPECT_EQ(wrong("distribution: q_uniform, min: 0, max: 1, q: -1"), ":1: p: q: expected a number above 0, got -1");
  EXPECT_EQ(wrong("distribution: q_uniform, min: 1, max: 2, q: 5"),
            ":1: p: expected a multiple of 5 in the range, got 1..2");
  EXPECT_EQ(wrong("distribution: log_uniform, min: -2, max: -11"),
            ":1: p: expected LOW..HIGH with LOW below HIGH, got -2..-11");
  EXPECT_EQ(wrong("distribution: log_uniform, min: 1, max: 1000"),
            ":1: p: log_uniform: expected exponents of e of at most 709, got 1000");
  EXPECT_EQ(wrong("values: [a, b], probabilities: [1]"),
            ":1: p: probabilities: expected one for each of 2 values, got 1");
  EXPECT_EQ(wrong("values: [a, b], probabilities: [0.5, 0.6]"), ":1: p: probabilities: expected a sum of 1, got 1.1");
  EXPECT_EQ(wrong("values: [a, b], probabilities: [2, -1]"),
            ":1: p: probabilities: expected numbers of at least 0, got -1");
  EXPECT_EQ(wrong("values: [a, b], probabilities: [0.5, 0.5]"),
            ":1: p: probabilities: expected method random, got grid");
  EXPECT_EQ(wrong("parameters: {a: {value: 1}}"),
            ":1: p: nested parameters: programs take flags. Write each as p.NAME beside the others");
}

TEST_F(SweepFiles, EarlyStoppingByTheLastIteration) {
  const SweepFile sweep =
      read("early_terminate: {type: hyperband, max_iter: 27, s: 2, strict: false}\nparameters: {lr: {value: 1}}");
  EXPECT_EQ(sweep.min_iter, 3);
  EXPECT_EQ(sweep.max_iter, 27);
  EXPECT_EQ(sweep.eta, 3);
  EXPECT_THAT(sweep.notes, ElementsAre(testing::HasSubstr("early_terminate: strict false is passed over: ")));
}

TEST_F(SweepFiles, WandbsOwnKeysArePassedOverWithALine) {
  const SweepFile sweep =
      read("project: p\nentity: e\nname: n\nmetric: {name: loss, target: 0.1}\nparameters: {lr: {value: 1}}");
  EXPECT_THAT(sweep.notes, ElementsAre(path_ + ": metric: target is passed over: all points run, or as many as run_cap",
                                       path_ + ": passed over, as wandb's own: project, entity, name"));
  EXPECT_EQ(error("run_cap: 0\nparameters: {lr: {value: 1}}"), ":1: run_cap: expected a value at least 1, got 0");
}

TEST_F(SweepFiles, CommandsOfPrograms) {
  const std::string parameters = "\nparameters: {lr: {values: [1, 2]}, amp: {value: true}}\n";
  const auto command = [&](const std::string& text) { return read(text + parameters).command; };
  EXPECT_THAT(command("method: grid"), ElementsAre());
  EXPECT_THAT(command("program: train_image"), ElementsAre("train_image", "--lr={lr}", "--amp={amp}"));
  EXPECT_THAT(command("program: train.py"), ElementsAre("python3", "train.py", "--lr={lr}", "--amp={amp}"));
  EXPECT_THAT(
      command(
          "program: t.py\ncommand: ['${env}', '${interpreter}', '${program}', --epochs, '3', '${args_no_hyphens}']"),
      ElementsAre("/usr/bin/env", "python3", "t.py", "--epochs", "3", "lr={lr}", "amp={amp}"));
  ::setenv("SWEEP_TEST_DATA", "d${x}", 1);
  EXPECT_THAT(command("command: [train_image, '--data=${envvar:SWEEP_TEST_DATA}', '${args_override_hydra}']"),
              ElementsAre("train_image", "--data=d${x}", "++lr={lr}", "++amp={amp}"));
  ::unsetenv("SWEEP_TEST_DATA");
  EXPECT_THAT(command("command: [a, '-x', '{lr}']"), ElementsAre("a", "-x", "{lr}"));
  const auto wrong = [&](const std::string& text) { return error(text + parameters); };
  EXPECT_EQ(wrong("command: [a, b]"), ":1: command: expected ${args}, which becomes the values' flags");
  EXPECT_EQ(wrong("command: ['${program}', '${args}']"), ":1: command: expected a program for ${program}, got none");
  EXPECT_THAT(wrong("command: [a, '${args_json}']"),
              testing::HasSubstr(":1: command: ${args_json}: expected ${env}, "));
  EXPECT_EQ(wrong("command: [a, '${envvar:SWEEP_TEST_DATA}', '${args}']"),
            ":1: command: the variable SWEEP_TEST_DATA is not set");
  EXPECT_EQ(wrong("command: [a, '${args_no_boolean_flags}']"),
            ":1: command: ${args_no_boolean_flags}: amp is true in some runs. Weft's programs take --amp=true: write "
            "${args}");
}

TEST_F(SweepFiles, ErrorsNameTheLine) {
  EXPECT_EQ(error("method: grid\nmethod: random\nparameters: {lr: {value: 1}}"),
            ":2: a sweep: expected each key once, got 'method' twice");
  EXPECT_EQ(error("parameters:\n  lr: {values: [1], values: [2]}"),
            ":2: lr: expected each key once, got 'values' twice");
  EXPECT_EQ(error("parameters:\n  lr: {values: [1], value: 2}"), ":2: lr: expected value or values, got both");
  EXPECT_EQ(error("method: bayesian\nparameters: {lr: {value: 1}}"),
            ":1: method: unknown value 'bayesian'. Known: grid, random, bayes.");
  EXPECT_EQ(error("early_terminate: {type: median}\nparameters: {lr: {value: 1}}"),
            ":1: type: unknown value 'median'. Known: hyperband.");
  EXPECT_EQ(error("early_terminate: {max_iters: 27}\nparameters: {lr: {value: 1}}"),
            ":1: unknown key 'max_iters'. Did you mean 'max_iter'?");
  EXPECT_EQ(error("early_terminate: {max_iter: 27}\nparameters: {lr: {value: 1}}"),
            ":1: early_terminate: expected max_iter and s together");
  EXPECT_EQ(error("early_terminate: {max_iter: 27, s: 2, min_iter: 3}\nparameters: {lr: {value: 1}}"),
            ":1: early_terminate: expected min_iter, or max_iter with s, got both");
  EXPECT_EQ(error("early_terminate: {max_iter: 10, s: 2}\nparameters: {lr: {value: 1}}"),
            ":1: early_terminate: expected max_iter to be a multiple of eta^s, got 10, 3 and 2. Give min_iter instead");
  EXPECT_EQ(error("early_terminate: {min_iter: 3, eta: 1}\nparameters: {lr: {value: 1}}"),
            ":1: eta: expected a value at least 2, got 1");
  EXPECT_EQ(error("early_terminate: {eta: 3}\nparameters: {lr: {value: 1}}"),
            ":1: early_terminate: expected min_iter, or max_iter with s");
  EXPECT_EQ(error("method: grid"), ":1: expected parameters, got none");
  EXPECT_EQ(error("method: grid\nparamters:\n  lr: {value: 1}"),
            ":2: unknown key 'paramters'. Did you mean 'parameters'?");
  EXPECT_EQ(error("parameters:\n  lr: 1"), ":2: lr: expected keys with values");
  EXPECT_EQ(error("parameters:\n  lr: {min: 1}"), ":2: lr: expected value, values, or min and max");
  EXPECT_EQ(error("parameters:\n  lr: {values: 3}"), ":2: lr: expected a list of values");
  EXPECT_EQ(error("parameters:\n  lr: {min: a, max: 2}"), ":2: lr: expected a number, got 'a'");
  EXPECT_EQ(error("parameters:\n  lr: {min: 2, max: 1}"), ":2: lr: expected LOW..HIGH with LOW below HIGH, got 2..1");
  EXPECT_EQ(error("metric: {name: x, goal: lowest}\nparameters: {lr: {value: 1}}"),
            ":1: goal: unknown value 'lowest'. Known: minimize, maximize.");
  EXPECT_EQ(error(""), ":1: expected a sweep, got an empty file");
}

}  // namespace
}  // namespace weft::weft_sweep
