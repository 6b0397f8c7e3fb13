// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tests/support/devices.h"
#include "tests/support/shell.h"

// The suites of `bench` for a GPU in tiny sizes: every case runs and prints its line. bench.t has the others.

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

}  // namespace
}  // namespace weft::tests
