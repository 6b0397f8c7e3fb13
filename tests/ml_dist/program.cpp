// SPDX-License-Identifier: Apache-2.0
// mnist under all its names, as its users start it.
#include <gmock/gmock.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "apps/support/run_reader.h"
#include "data/idx.h"
#include "io/weights/weights_file.h"
#include "tests/ml_dist/idx_files.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {
namespace {

using testing::HasSubstr;

class Mnist : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string data_ = write_mnist(folder_ / "data");

  /// stdout alone.
  Outcome run(const std::string& command) {
    return shell("{ { export PATH=" BIN ":$PATH OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive; cd " + (folder_ / "") +
                 " && " + command + "; } 2>" + (folder_ / "stderr.txt") + "; }");
  }
  std::string said() const { return read_text(folder_ / "stderr.txt"); }
  StateDict model(const std::string& output) const {
    return open_weights(folder_ / (output + "/mnist_cnn.pt"))->read_all();
  }
  void expect_refusal(const std::string& command, int code, const std::string& text) {
    EXPECT_EQ(run(command).exit_code, code) << said();
    EXPECT_THAT(said(), HasSubstr(command.substr(0, command.find(' ')) + ": error: " + text));
  }
};

/// The number behind `Accuracy: `: of right answers, or per cent.
double accuracy(const std::string& output) {
  const size_t at = output.rfind("Accuracy: ");
  return at == output.npos ? -1 : std::stod(output.substr(at + 10));
}

const std::string kLoss = R"(\tLoss: [0-9]+\.[0-9]{6})";
const std::string kTested = R"(Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+/250 \([0-9]+%\))";
const std::string kTestedByMpi = R"(Test set: Average loss: [0-9]+\.[0-9]{4}, Accuracy: [0-9]+\.[0-9]{4}%)";

[[maybe_unused]] void expect_names_and_shapes(const StateDict& state) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : state.tensors) names.push_back(str(entry.name, entry.tensor.sizes()));
  EXPECT_THAT(names, testing::UnorderedElementsAre("conv1.weight[32,1,3,3]", "conv1.bias[32]",
                                                   "conv2.weight[64,32,3,3]", "conv2.bias[64]", "fc1.weight[128,9216]",
                                                   "fc1.bias[128]", "fc2.weight[10,128]", "fc2.bias[10]"));
}

TEST_F(Mnist, BasePrintsLearnsAndSaves) {
  const std::string save = WEFT_HAVE_ZIP ? " --save-model" : "";
  const Outcome base = run("mnist --epochs 2 --log-interval 3 --data-dir=" + data_ + " --output-dir=out/base" + save);
  ASSERT_EQ(base.exit_code, 0) << said();
  std::string progress;
  for (const int step : {0, 3, 6, 9})
    progress += "Train Epoch: 1 \\[" + std::to_string(64 * step) + "/640 \\(" + std::to_string(10 * step) + "%\\)\\]" +
                kLoss + "\n";
  const std::string second = std::regex_replace(progress, std::regex("Epoch: 1"), "Epoch: 2");
  EXPECT_TRUE(
      std::regex_match(base.output, std::regex(progress + "\n" + kTested + "\n\n" + second + "\n" + kTested + "\n\n")))
      << base.output;
  EXPECT_GE(accuracy(base.output), 225) << base.output;
  EXPECT_THAT(said(), HasSubstr("ranks   1"));
#if WEFT_HAVE_ZIP
  expect_names_and_shapes(model("out/base"));
#endif
}

TEST_F(Mnist, ADryRunIsOneBatchPerEpoch) {
  const Outcome dry = run("mnist_base --dry-run --epochs 2 --data-dir " + data_);
  ASSERT_EQ(dry.exit_code, 0) << said();
  EXPECT_EQ(lines(dry.output, "Train Epoch: .*").size(), 2u) << dry.output;
  EXPECT_EQ(lines(dry.output, R"(Train Epoch: [12] \[0/640 \(0%\)\])" + kLoss).size(), 2u) << dry.output;
  EXPECT_EQ(lines(dry.output, kTested).size(), 2u) << dry.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "output"));  // a model is saved only when asked for
}

TEST_F(Mnist, KeepsNumbersWhereItIsAskedTo) {
  const Outcome base =
      run("mnist --epochs 2 --log-interval 4 --log-dir logs --data-dir " + data_ + " --output-dir out");
  ASSERT_EQ(base.exit_code, 0) << said();
  support::RunReader log(folder_ / "logs");
  log.refresh();
  const auto points = [&](const std::string& name) {
    const support::Curve* curve = log.find(name);
    EXPECT_NE(curve, nullptr) << name;
    return curve == nullptr ? std::vector<support::CurvePoint>() : curve->points;
  };
  EXPECT_EQ(points("train_loss").size(), 6u);  // behind the steps 0, 4 and 8 of ten
  EXPECT_EQ(points("test_loss").size(), 2u);
  const auto accuracies = points("test_accuracy"), rates = points("learning_rate");
  ASSERT_EQ(accuracies.size(), 2u);
  EXPECT_EQ(accuracies[1].step, 20);
  EXPECT_NEAR(250 * accuracies[1].value, accuracy(base.output), 1e-6);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_NEAR(rates[1].value, 0.7, 1e-9);
  EXPECT_EQ(log.ended(), true);
  EXPECT_THAT(read_text(folder_ / "logs/config.yaml"), HasSubstr("mode:\n  value: \"base\""));
}

TEST_F(Mnist, ASeedIsARun) {
  const std::string line = "base_training --epochs 1 --data-dir " + data_ + " --seed ";
  const std::string first = run(line + "3").output;
  EXPECT_EQ(run(line + "3").output, first);
  EXPECT_NE(run(line + "4").output, first);
}

#if WEFT_HAVE_ZLIB
TEST_F(Mnist, ReadsCompressedFiles) {
  const std::string line = "mnist --dry-run --epochs 1 --data-dir " + data_;
  const std::string plain = run(line).output;
  ASSERT_EQ(shell("gzip " + data_ + "/MNIST/raw/*").exit_code, 0);
  EXPECT_EQ(run(line).output, plain);
  EXPECT_NE(plain, "");
  // Also where tools/fetch_data leaves them.
  EXPECT_EQ(run(line + "/MNIST/raw").output, plain);
}
#endif

TEST_F(Mnist, EveryDeviceBeginsWithTheSameLoss) {
  write_part(data_ + "/MNIST/raw", "train", made_up(16, 1));
  write_part(data_ + "/MNIST/raw", "t10k", made_up(16, 1));
  const auto loss_on = [&](const std::string& device) {
    const Outcome outcome = run("mnist " + device + " --batch-size 8 --dry-run --epochs 1 --data-dir " + data_);
    EXPECT_EQ(outcome.exit_code, 0) << said();
    return std::stod(outcome.output.substr(outcome.output.find("Loss: ") + 6));
  };
  const double cpu = loss_on("--no-cuda");
  EXPECT_NEAR(loss_on("--device cpu"), cpu, 1e-4);
  if (runs_on(DeviceKind::cuda)) {
    EXPECT_NEAR(loss_on("--device " + gpu_device()), cpu, 1e-4);
  }
}

// Behind sixteen epochs it would be too late.
TEST_F(Mnist, SaysBeforeTrainingThatItCannotSave) {
#if WEFT_HAVE_ZIP
  expect_refusal("mnist --save-model --data-dir " + data_ + " --output-dir /dev/null/out", 1,
                 "run folder: expected to create /dev/null/out");
#else
  expect_refusal("mnist --save-model --data-dir " + data_, 1, "--save-model: built without libzip");
#endif
  EXPECT_THAT(said(), testing::Not(HasSubstr("epoch 1")));
}

TEST_F(Mnist, SaysWhatIsWrong) {
  expect_refusal("mnist --data-dir nowhere", 1,
                 "--data-dir: there is no folder nowhere, which should hold MNIST/raw with MNIST's four files. "
                 "`tools/fetch_data mnist` brings them to datasets/mnist");
  std::filesystem::create_directories(folder_ / "empty");
  expect_refusal("mnist --data-dir empty", 1, "idx: expected one of train-images-idx3-ubyte, ");
  std::filesystem::resize_file(data_ + "/MNIST/raw/train-images-idx3-ubyte", 1000);
  expect_refusal("mnist_ddp --data-dir " + data_, 1, "idx: ");
  EXPECT_THAT(said(), HasSubstr("is truncated"));
  Digits many = made_up(10, 1);
  many.labels[0] = 46;
  write_part(data_ + "/MNIST/raw", "train", many);
  expect_refusal("mnist --data-dir " + data_, 1, "--data-dir: expected images of 28x28x1 in 10 classes, got idx");
  expect_refusal("mnist --no-cuda --device cuda", 2, "--no-cuda: expected no other --device, got --device cuda");
  expect_refusal("horovod_training --epocs 3", 2, "unknown flag --epocs. Did you mean --epochs?");
  expect_refusal("mnist --mode fsdp", 2, "--mode: unknown value 'fsdp'");
  expect_refusal("mnist --log-interval 0", 2, "--log-interval: expected a value at least 1, got 0");
}

TEST_F(Mnist, HelpNamesTheTwelveFlags) {
  const Outcome help = run("ddp_training --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* flag : {"--batch-size", "--test-batch-size", "--epochs", "--lr", "--gamma", "--no-cuda", "--dry-run",
                           "--seed", "--log-interval", "--save-model", "--data-dir", "--output-dir"})
    EXPECT_THAT(help.output, HasSubstr(flag));
  for (const char* value : {"--batch-size N [64] ", "--test-batch-size N [1000] ", "--epochs N [16] ",
                            "--gamma X [0.7] ", "[./output/default]"})
    EXPECT_THAT(help.output, HasSubstr(value));
}

#if WEFT_HAVE_ZLIB
/// The first images of a real set, on which bars of light would not do.
TEST_F(Mnist, LearnsFromRealImages) {
  const std::string real = WEFT_SHARED_DATA "/fashion-mnist";
  if (!std::filesystem::exists(real)) GTEST_SKIP() << "no Fashion-MNIST at " << real;
  for (const auto& [part, split, count] :
       {std::tuple{"train", data::Split::train, 6000}, {"t10k", data::Split::val, 1000}}) {
    const auto set = data::idx(real, split);
    Digits first;
    first.pixels.assign(set->storage()->pixels, set->storage()->image(count));
    first.labels.assign(set->storage()->labels, set->storage()->labels + count);
    write_part(data_ + "/MNIST/raw", part, first);
  }
  const Outcome fashion = run("OMP_NUM_THREADS=2 mnist --epochs 1 --data-dir " + data_);
  ASSERT_EQ(fashion.exit_code, 0) << said();
  EXPECT_GE(accuracy(fashion.output), 750) << fashion.output;
}
#endif

#if WEFT_HAVE_RANKS

/// The output of two ranks: each its own lines of training, and the same test of the whole set.
void expect_two_ranks(const Outcome& run, const std::string& tested, const std::string& end) {
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(lines(run.output, R"(Train Epoch: 1 \[(0|192)/320 \((0|60)%\)\])" + kLoss + end).size(), 4u) << run.output;
  std::vector<std::string> tests = lines(run.output, tested);
  ASSERT_EQ(tests.size(), 4u) << run.output;
  std::sort(tests.begin(), tests.end());
  EXPECT_EQ(tests[0], tests[1]) << run.output;
  EXPECT_EQ(tests[2], tests[3]) << run.output;
}

TEST_F(Mnist, DdpOnTwoRanks) {
  const WithoutGpus on_the_cpu;
  const std::string save = WEFT_HAVE_ZIP ? " --save-model" : "";
  const Outcome ddp = run("weft-run --nproc_per_node 2 " BIN "/ddp_training --epochs 2 --log-interval 3 --data-dir " +
                          data_ + " --output-dir out/ddp" + save);
  expect_two_ranks(ddp, kTested, " ");
  EXPECT_GE(accuracy(ddp.output), 225) << ddp.output;
#if WEFT_HAVE_ZIP
  expect_names_and_shapes(model("out/ddp"));
#endif
}

TEST_F(Mnist, RanksWithOtherFlagsOrImagesAreNamed) {
  const WithoutGpus on_the_cpu;
  const auto refusal = [&](const std::string& flags) {
    EXPECT_EQ(run("weft-run --nproc_per_node 2 sh -c '" BIN "/mnist_ddp --epochs 1 " + flags + "'").exit_code, 1);
    return said();
  };
  EXPECT_THAT(refusal("--data-dir " + data_ + " --lr 1.$RANK"),
              HasSubstr("settings: the flags are not the same on all ranks: at entry "));
  const std::string other = write_mnist(folder_ / "other");
  write_part(other + "/MNIST/raw", "train", made_up(600, 1));
  EXPECT_THAT(refusal("--data-dir $([ $RANK = 0 ] && echo " + data_ + " || echo " + other + ")"),
              HasSubstr("data: the set is not the same on all ranks: at entry 1 rank 0 has '640 images for training', "
                        "rank 1 has '600 images for training'. All ranks must read the same images"));
}

TEST_F(Mnist, TakesHostAndPortInMasterAddr) {
  const WithoutGpus on_the_cpu;
  const std::string rank =
      "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost:$port WEFT_JOB_SECRET=known-to-two-ranks " BIN
      "/mnist_ddp --dry-run --epochs 1 --data-dir " +
      data_;
  const Outcome both =
      run("port=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"\", 0)); "
          "print(s.getsockname()[1])'); RANK=1 LOCAL_RANK=1 " +
          rank + " & RANK=0 LOCAL_RANK=0 " + rank + "; wait $!");
  ASSERT_EQ(both.exit_code, 0) << said();
  EXPECT_EQ(lines(both.output, R"(Train Epoch: 1 \[0/320 \(0%\)\])" + kLoss + " ").size(), 2u) << both.output;
  EXPECT_EQ(lines(both.output, kTested).size(), 2u) << both.output;
}

#if WEFT_HAVE_MPI && WEFT_HAVE_ZIP
TEST_F(Mnist, HorovodsWayUnderMpirunIsDdp) {
  const WithoutGpus on_the_cpu;
  const std::string arguments = " --epochs 2 --log-interval 3 --save-model --data-dir " + data_ + " --output-dir ";
  const std::string mpirun = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 -x NCCL_DEBUG=INFO ";
  const Outcome horovod = run(mpirun + BIN "/horovod_training" + arguments + "out/horovod");
  expect_two_ranks(horovod, kTestedByMpi, "");
  EXPECT_GE(accuracy(horovod.output), 90) << horovod.output;
  expect_names_and_shapes(model("out/horovod"));

  // With equal batches an optimizer that averages is DDP.
  const Outcome ddp = run(mpirun + BIN "/mnist --mode ddp" + arguments + "out/ddp");
  expect_two_ranks(ddp, kTested, " ");
  const StateDict a = model("out/horovod"), b = model("out/ddp");
  for (const NamedTensor& entry : a.tensors)
    EXPECT_TRUE(near(entry.tensor.to_vector<double>(), b.tensor(entry.name).to_vector<double>(),
                     tolerance(DType::f32, 20 * 64 * 576)))
        << entry.name;

  // `mnist` and mnist_base as ranks of nobody: two runs that know nothing of each other.
  const Outcome base = run(mpirun + BIN "/mnist_base --dry-run --epochs 1 --data-dir " + data_);
  ASSERT_EQ(base.exit_code, 0) << said();
  EXPECT_EQ(lines(base.output, R"(Train Epoch: 1 \[0/640 \(0%\)\])" + kLoss).size(), 2u) << base.output;
}
#endif
#endif

}  // namespace
}  // namespace weft::tests
