// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tests/support/devices.h"
#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

// `bench` itself in tiny sizes: every case runs and prints its line, and wrong flags are told.

namespace weft::tests {
namespace {

using testing::HasSubstr;

Outcome bench(const std::string& arguments) { return shell(std::string(BENCH) + ' ' + arguments); }

/// The lines `case<TAB>value<TAB>unit`.
std::map<std::string, std::string> rows(const std::string& output) {
  std::map<std::string, std::string> units;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::string name, value, unit, more;
    std::getline(cells, name, '\t');
    std::getline(cells, value, '\t');
    std::getline(cells, unit, '\t');
    EXPECT_FALSE(std::getline(cells, more, '\t')) << line;
    size_t read = 0;
    const double number = std::stod(value, &read);
    EXPECT_EQ(read, value.size()) << line;
    EXPECT_TRUE(std::isfinite(number) && number > 0) << line;
    EXPECT_TRUE(units.emplace(name, unit).second) << "twice: " << line;
  }
  return units;
}

/// The cases that peers and notes refer to.
const std::map<std::string, std::string> kCpu = {{"resnet18_train_f32", "images/s"},
                                                 {"resnet18_train_bf16", "images/s"},
                                                 {"resnet18_infer_f32", "images/s"},
                                                 {"resnet18_infer_bf16", "images/s"},
                                                 {"resnet50_train_f32", "images/s"},
                                                 {"resnet50_train_bf16", "images/s"},
                                                 {"resnet50_infer_f32", "images/s"},
                                                 {"resnet50_infer_bf16", "images/s"},
                                                 {"conv3x3_forward", "ms"},
                                                 {"conv3x3_forward_backward", "ms"},
                                                 {"matmul_1024_f32", "GFLOP/s"},
                                                 {"matmul_1024_bf16", "GFLOP/s"},
                                                 {"matmul_2048_f32", "GFLOP/s"},
                                                 {"matmul_2048_bf16", "GFLOP/s"},
                                                 {"linear_forward", "ms"},
                                                 {"linear_forward_backward", "ms"},
                                                 {"batch_norm_forward", "ms"},
                                                 {"batch_norm_forward_backward", "ms"},
                                                 {"layer_norm_forward", "ms"},
                                                 {"layer_norm_forward_backward", "ms"},
                                                 {"cross_entropy_forward_backward", "ms"},
                                                 {"add_16m", "GB/s"},
                                                 {"add_inplace_16m", "GB/s"},
                                                 {"sgd_step", "ms"},
                                                 {"adam_step", "ms"},
                                                 {"adamw_step", "ms"},
                                                 {"add_16", "ns"},
                                                 {"add_16_autograd", "ns"},
                                                 {"chain_forward", "ns"},
                                                 {"chain_backward", "ns"},
                                                 {"loader_jpeg", "images/s"},
                                                 {"startup", "ms"},
                                                 {"resnet18_train_memory", "MiB"},
                                                 {"resnet50_train_memory", "MiB"}};

TEST(Bench, EveryCaseOfTheCpuSuiteRuns) {
  // Without libjpeg-turbo one case cannot run; the test below has its message.
  const std::string filter = WEFT_HAVE_JPEG ? "" : " --filter '^(?!loader_jpeg$)'";
  const Outcome outcome = bench("--suite cpu --tiny --seconds 0 --repetitions 1" + filter);
  EXPECT_EQ(outcome.exit_code, 0);
  const std::map<std::string, std::string> found = rows(outcome.output);
  for (const auto& [name, unit] : kCpu) {
    if (!WEFT_HAVE_JPEG && name == "loader_jpeg") continue;
    EXPECT_TRUE(found.contains(name) && found.at(name) == unit) << name;
  }
  const std::string listed = bench("--list" + filter).output;
  EXPECT_EQ(static_cast<long>(found.size()), std::count(listed.begin(), listed.end(), '\n')) << outcome.output;
}

TEST(Bench, ACaseWithoutItsPartSaysHowToBuildItIn) {
  if (WEFT_HAVE_JPEG) GTEST_SKIP() << "this build has libjpeg-turbo: WEFT_WITHOUT=all has its stub";
  const Outcome outcome = bench("--tiny --seconds 0 --filter '^loader_jpeg$'");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output,
            "bench: loader_jpeg: built without libjpeg-turbo: apt-get install libjpeg-dev and build again\n");
}

TEST(Bench, EveryCaseOfTheSuiteOpsRuns) {
  const std::string listed = bench("--suite ops --tiny --list").output;
  const Outcome outcome = bench("--suite ops --tiny --seconds 0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'),
            std::count(listed.begin(), listed.end(), '\n'));
  for (const char* one : {"where_f32", "softplus_bf16", "permutation_f32"})
    EXPECT_TRUE(rows(outcome.output).contains(one)) << one;
}

class GpuSuite : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  }
  static Outcome bench_gpu(const std::string& arguments) {
    return bench("--device " + gpu_device() + " --tiny " + arguments);
  }
};

TEST_F(GpuSuite, EveryCaseRuns) {
  const std::string listed = bench_gpu("--suite gpu --list").output;
  const Outcome outcome = bench_gpu("--suite gpu --seconds 0");
  EXPECT_EQ(outcome.exit_code, 0);
  const std::map<std::string, std::string> found = rows(outcome.output);
  EXPECT_EQ(static_cast<long>(found.size()), std::count(listed.begin(), listed.end(), '\n'));
  for (const auto& [name, unit] : found) EXPECT_THAT('\n' + listed, HasSubstr('\n' + name + '\t' + unit + '\n'));
  for (const char* one : {"resnet50_b64_train_bf16",
                          "resnet50_b256_train_bf16",
                          "vit_b16_b256_train_bf16",
                          "resnet18_cifar_b256_train_f32",
                          "resnet50_b64_train_memory_bf16",
                          "matmul_8192_bf16",
                          "conv3x3_64_64_56_bf16_forward_backward",
                          "batch_norm_bf16_forward",
                          "layer_norm_f32_forward_backward",
                          "softmax_bf16_forward",
                          "cross_entropy_f32_forward",
                          "vit_attention_bf16_forward",
                          "vit_mlp_bf16_forward_backward",
                          "add_64m_f32",
                          "copy_64m_bf16",
                          "memcpy_256m",
                          "memcpy_256m_from_host",
                          "input_cifar_b256_mixed",
                          "allocate_4k",
                          "adamw_step",
                          "add_16",
                          "chain_backward"})
    EXPECT_TRUE(found.contains(one)) << one;
}

TEST_F(GpuSuite, TheSuitePlansRunsEveryPlan) {
  const Outcome outcome = bench_gpu("--suite plans --seconds 0 --filter ^matmul_1024_backward_weight");
  EXPECT_EQ(outcome.exit_code, 0);
  const std::map<std::string, std::string> found = rows(outcome.output);
  // As planned; splits; seven tiles, three of them in pairs, too, and one that two or four blocks share.
  EXPECT_EQ(found.size(), 1 + 8 * (7 + 3 + 2));
  for (const char* plan : {"", "@small_s16_c1", "@medium_s1_c2", "@large_s3_c1", "@tall_s1_c1", "@wide_s1_c1",
                           "@broad_s1_c1", "@joined_s1_c4"})
    EXPECT_TRUE(found.contains(std::string("matmul_1024_backward_weight") + plan)) << plan;
}

TEST_F(GpuSuite, TheSuiteEnginesRunsOwnKernelsAndTheVendors) {
  // The emulator has a cuBLASLt of its own, and cuDNN's machine code does not run there.
  const bool cublaslt = WEFT_HAVE_CUBLASLT, cudnn = WEFT_HAVE_CUDNN && !emulated();
  const std::string missing = std::string(cublaslt ? "" : "|matmul|linear") + (cudnn ? "" : "|conv|attention");
  const Outcome outcome = bench_gpu("--suite engines --seconds 0 --filter '^(?!(none" + missing + ").*@vendor)'");
  EXPECT_EQ(outcome.exit_code, 0);
  const std::map<std::string, std::string> found = rows(outcome.output);
  int own = 0, vendor = 0;
  for (const auto& [name, unit] : found) {
    ++(name.ends_with("@vendor") ? vendor : own);
    EXPECT_EQ(unit, name.starts_with("quantize_") ? "GB/s" : "TFLOP/s") << name;
  }
  const int products = 10 * 3 + 2, others = 23 * 3 - 1 + 5 * 2, in_8_bits = 3;  // the last are Weft's alone
  EXPECT_EQ(own, products + others + in_8_bits);
  EXPECT_EQ(vendor, (cublaslt ? products : 0) + (cudnn ? others : 0));
  for (const char* one : {"matmul_8192_forward", "matmul_vit_fc1_backward_weight", "linear_vit_fc1_bias_gelu",
                          "conv7x7s2_3_64_224_backward_weight", "conv3x3_512_512_7_backward_input",
                          "attention_vit_forward", "attention_causal_4096_128_backward"})
    EXPECT_TRUE(found.contains(one)) << one;
}

TEST(Bench, PythonPeersAreValidPython) {
  const Outcome outcome =
      shell("cd " PEERS
            " && for file in *.py; do python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' $file; done");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "");
}

TEST(Bench, ListHasNamesAndUnits) {
  const Outcome outcome = bench("--list");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const auto& [name, unit] : kCpu) EXPECT_THAT('\n' + outcome.output, HasSubstr('\n' + name + '\t' + unit + '\n'));
}

TEST(Bench, FilterChooses) {
  const Outcome outcome = bench("--tiny --seconds 0 --repetitions 2 --filter '^add_16$|^startup$'");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(rows(outcome.output), (std::map<std::string, std::string>{{"add_16", "ns"}, {"startup", "ms"}}));
}

TEST(Bench, VariantsAlternateInOneProcess) {
  const Outcome outcome =
      bench("--tiny --seconds 0.001 --repetitions 1 --filter '^gpt2_train_bf16$' --variants dense_logits,chunked_loss");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(rows(outcome.output),
            (std::map<std::string, std::string>{{"gpt2_train_bf16", "sequences/s"},
                                                {"gpt2_train_bf16@dense_logits", "sequences/s"},
                                                {"gpt2_train_bf16@chunked_loss", "sequences/s"}}));
}

TEST(Bench, KernelsOfACase) {
  const TemporaryFolder folder;
  EXPECT_EQ(bench("--tiny --seconds 0 --filter '^linear_forward$' --kernels " + folder.path().string()).exit_code, 0);
  EXPECT_THAT(read_text(folder / "linear_forward.txt"), HasSubstr("matmul"));
}

TEST(Bench, TimeThatIsUsedUpIsTold) {
  const Outcome outcome = bench("--tiny --seconds-total 0.000001 --filter '^add_16$'");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "bench: add_16: not measured, --seconds-total is used up\n");
}

TEST(Bench, WrongFlagsAreTold) {
  const auto expect = [](const std::string& arguments, int status, const std::string& text) {
    const Outcome outcome = bench(arguments);
    EXPECT_EQ(outcome.exit_code, status) << arguments;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  };
  expect("--filter nothing_like_it", 1, "bench: no case of the suite cpu matches 'nothing_like_it'. --list prints");
  expect("--filter '['", 2, "bench: --filter: '[' is no regular expression: ");
  expect("--repetitions 0", 2, "bench: --repetitions: Value 0 not in range");
  expect("--suite tpu", 2, "bench: --suite: tpu not in {");
  const std::string names = ": expected names among dense_logits, chunked_loss, separated by commas, got 'x'\n";
  expect("--variants x", 1, "bench: variants" + names);
  expect("--tiny --filter '^startup$' --variants dense_logits", 1, "bench: startup: --variants: it has no steps");
  EXPECT_THAT(shell("WEFT_VARIANT=x " BENCH " --tiny --seconds 0 --filter '^cross_entropy'").output,
              HasSubstr(": WEFT_VARIANT" + names));
  expect("--fast", 2, "bench: The following argument was not expected: --fast");
  expect("--device tpu", 1, "bench: device: expected cpu, cuda, cuda:N or emulated, got 'tpu'");
  if (shell("test -e /dev/nvidia0").exit_code != 0) expect("--suite gpu", 1, "bench: device: 'cuda' cannot be used: ");
  expect("--process add_16", 2, "bench: no case 'add_16' has a process of its own");
}

}  // namespace
}  // namespace weft::tests
