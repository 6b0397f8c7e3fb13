// SPDX-License-Identifier: Apache-2.0
#include "apps/support/run_reader.h"
#include "io/weights/weights_file.h"
#include "tests/support/devices.h"
#include "tests/vista/program.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

/// The original's output, epoch by epoch.
std::string expected_lines(int epochs, int every, int batch, int steps) {
  std::string text;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    text += str("[GPU0] Epoch ", epoch, " | Batchsize: ", batch, " | Steps: ", steps, "\n");
    if (epoch % every == 0) text += str("Epoch ", epoch, " | Training checkpoint saved at checkpoint.pt\n");
  }
  return text;
}

std::vector<float> weights_in(const TemporaryFolder& folder) {
  const auto file = open_weights(folder / "checkpoint.pt");
  EXPECT_EQ(file->tensors().size(), 2u);
  const Tensor weight = file->read(static_cast<size_t>(file->find("weight")));
  EXPECT_EQ(weight.sizes(), (Shape{1, 20}));
  EXPECT_EQ(file->read(static_cast<size_t>(file->find("bias"))).sizes(), (Shape{1}));
  return weight.to_vector<float>();
}

/// The losses that stderr tells of: of the first epoch and of the last.
std::vector<double> losses(const TemporaryFolder& folder) {
  std::vector<double> found;
  std::istringstream in(lines_with(said(folder), "mean loss of epoch "));
  for (std::string line; std::getline(in, line);) found.push_back(std::stod(line.substr(line.rfind(' '))));
  return found;
}

TEST(SingleGpu, PrintsAndSavesAsTheTutorialDoes) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  const Outcome run = run_in(folder, "single_gpu 50 10");
  ASSERT_EQ(run.exit_code, 0) << said(folder);
  EXPECT_EQ(run.output, expected_lines(50, 10, 32, 64));
  EXPECT_EQ(weights_in(folder).size(), 20u);
  ASSERT_EQ(losses(folder).size(), 2u) << said(folder);
  EXPECT_LT(losses(folder)[1], 0.8 * losses(folder)[0]);  // it learns, unlike the original
  EXPECT_GT(losses(folder)[1], 0.07);                     // a uniform number cannot be guessed better than 1/12
}

TEST(SingleGpu, KeepsItsLossWhereItIsAskedTo) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  ASSERT_EQ(run_in(folder, "single_gpu 3 10 --log-dir logs/a").exit_code, 0) << said(folder);
  support::RunReader log(folder / "logs/a");
  log.refresh();
  const support::Curve* loss = log.find("train_loss");
  ASSERT_NE(loss, nullptr);
  ASSERT_EQ(loss->points.size(), 3u);
  EXPECT_EQ(loss->points.back().step, 3);
  EXPECT_NEAR(loss->points.back().value, losses(folder)[1], 1e-5);
  EXPECT_NE(log.find("pairs_per_second"), nullptr);
  EXPECT_EQ(log.ended(), true);
  EXPECT_THAT(read_text(folder / "logs/a/config.yaml"), HasSubstr("batch_size:\n  value: 32"));
  EXPECT_EQ(folder.files(), 3u);  // checkpoint.pt, logs, stderr.txt
}

TEST(SingleGpu, TakesABatchSize) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  EXPECT_EQ(run_in(folder, "single_gpu 2 1 --batch_size 100").output, expected_lines(2, 1, 100, 21));
  EXPECT_EQ(run_in(folder, "single_gpu --batch-size=4096 1 1").output, expected_lines(1, 1, 2048, 1));
}

TEST(SingleGpu, TheOriginalsLossTrainsNothing) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  const auto weights_after = [&](const std::string& flags) {
    EXPECT_EQ(run_in(folder, "single_gpu 3 2 " + flags).exit_code, 0) << said(folder);
    return weights_in(folder);
  };
  const std::vector<float> untouched = weights_after("--lr 0");
  EXPECT_EQ(weights_after("--loss cross_entropy --lr 1"), untouched);
  EXPECT_EQ(losses(folder), (std::vector<double>{0, 0}));
  EXPECT_NE(weights_after(""), untouched);
}

TEST(SingleGpu, RunsOnEveryDevice) {
  WEFT_NEEDS_ZIP();
  const TemporaryFolder folder;
  for (const DeviceKind kind : test_devices()) {
    const std::string device = kind == DeviceKind::cpu ? "cpu" : gpu_device();
    const Outcome run = run_in(folder, "single_gpu 1 1 --batch_size 512 --device " + device);
    EXPECT_EQ(run.output, expected_lines(1, 1, 512, 4)) << said(folder);
  }
}

TEST(SingleGpu, ADryRunTrainsNothing) {
  const TemporaryFolder folder;
  const Outcome run = run_in(folder, "single_gpu 50 10 --dry-run --device cpu");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "");
  EXPECT_THAT(said(folder), HasSubstr("single_gpu: would train Linear(20, 1) on cpu"));
  EXPECT_THAT(said(folder), HasSubstr("50 epochs of 64 steps of 32 pairs, loss mse, lr 0.001; checkpoint.pt every 10"));
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoint.pt"));
}

TEST(SingleGpu, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& arguments, int code) {
    EXPECT_EQ(run_in(folder, "single_gpu " + arguments).exit_code, code) << said(folder);
    return said(folder);
  };
  EXPECT_EQ(refusal("50", 2),
            "single_gpu: error: expected save_every (write checkpoint.pt after every epoch that this divides), got no "
            "such argument (single_gpu --help lists the flags)\n");
  EXPECT_THAT(refusal("fifty 10", 2), HasSubstr("error: total_epochs: expected a whole number, got 'fifty'"));
  EXPECT_THAT(refusal("50 0", 2), HasSubstr("error: save_every: expected a value at least 1"));
  EXPECT_THAT(refusal("50 10 --batchsize 3", 2), HasSubstr("unknown flag --batchsize. Did you mean --batch-size?"));
  EXPECT_THAT(refusal("50 10 --loss huber", 2), HasSubstr("--loss: unknown value 'huber'"));
  EXPECT_THAT(refusal("50 10 --device cuda:99", 1), HasSubstr("device: 'cuda:99' cannot be used"));
  EXPECT_THAT(refusal("50 10 --config missing.toml", 2), HasSubstr("--config: expected a file, got none"));
  const Outcome help = run_in(folder, "single_gpu --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("total_epochs"));
}

}  // namespace
}  // namespace weft::tests
