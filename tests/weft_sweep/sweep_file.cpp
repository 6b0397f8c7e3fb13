// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(SweepFiles, ErrorsNameTheLine) {
  EXPECT_EQ(error("method: bayesian\nparameters: {lr: {value: 1}}"),
            ":1: method: unknown value 'bayesian'. Known: grid, random, bayes.");
  EXPECT_EQ(error("early_terminate: {type: median}\nparameters: {lr: {value: 1}}"),
            ":1: type: unknown value 'median'. Known: hyperband.");
  EXPECT_EQ(error("early_terminate: {max_iter: 27}\nparameters: {lr: {value: 1}}"),
            ":1: unknown key 'max_iter'. Did you mean 'min_iter'?");
  EXPECT_EQ(error("early_terminate: {min_iter: 3, eta: 1}\nparameters: {lr: {value: 1}}"),
            ":1: eta: expected a value at least 2, got 1");
  EXPECT_EQ(error("early_terminate: {eta: 3}\nparameters: {lr: {value: 1}}"), ":1: early_terminate: expected min_iter");
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
