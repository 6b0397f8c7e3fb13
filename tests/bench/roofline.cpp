// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "benchmarks/roofline/chip.h"
#include "tests/support/shell.h"

// The suite roofline against values by hand, at the sizes it is about: nothing runs, so they cost nothing.

namespace weft::tests {
namespace {

using benchmarks::Bound;
using benchmarks::Ceiling;
using benchmarks::Chip;
using benchmarks::Floor;
using benchmarks::floor_of;
using testing::HasSubstr;

using Row = std::map<std::string, std::string>;  // column to cell

std::vector<Row> roofline_rows(const std::string& output) {
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, '\t');) cells.push_back(cell);
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    EXPECT_EQ(cells.size(), columns.size()) << line;
    Row& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(cells.size(), columns.size()); ++i) row[columns[i]] = cells[i];
  }
  return rows;
}

std::vector<Row> roofline(const std::string& flags) {
  const Outcome outcome = shell(std::string(BENCH) + " --suite roofline " + flags);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  return roofline_rows(outcome.output);
}

Row only(const std::vector<Row>& rows, const std::string& kernel, const std::string& shapes) {
  Row found;
  for (const Row& row : rows)
    if (row.at("kernel") == kernel && row.at("shapes") == shapes) found = row;
  EXPECT_FALSE(found.empty()) << kernel << ' ' << shapes;
  return found;
}
double number(const Row& row, const std::string& column) { return row.empty() ? NAN : std::stod(row.at(column)); }

TEST(Roofline, TheLongestOfThreeTimesIsTheFloor) {
  constexpr Chip chip{"test", 1e12, 100e12, 10e12, 0.5e12, 80e12};
  const auto floor = [&](kernels::KernelCost cost, Ceiling ceiling) { return floor_of(cost, chip, ceiling); };
  const Floor memory = floor({.bytes = 1'000'000}, Ceiling::data_sheet);
  EXPECT_DOUBLE_EQ(memory.seconds, 1e-6);
  EXPECT_EQ(memory.bound, Bound::memory);
  EXPECT_DOUBLE_EQ(floor({.bytes = 1'000'000}, Ceiling::measured).seconds, 2e-6);
  const kernels::KernelCost product{.bytes = 1, .flop = 1e9, .product = DType::bf16};
  EXPECT_DOUBLE_EQ(floor(product, Ceiling::data_sheet).seconds, 1e-5);
  EXPECT_EQ(floor(product, Ceiling::data_sheet).bound, Bound::product);
  EXPECT_DOUBLE_EQ(floor(product, Ceiling::measured).seconds, 1e9 / 80e12);
  EXPECT_DOUBLE_EQ(floor({.flop = 1e9, .product = DType::f32}, Ceiling::measured).seconds, 1e-4);
  EXPECT_DOUBLE_EQ(floor({.bytes = 1, .arithmetic = 1e9}, Ceiling::data_sheet).seconds, 1e-4);
  EXPECT_EQ(floor({.bytes = 1, .arithmetic = 1e9}, Ceiling::data_sheet).bound, Bound::arithmetic);
}

TEST(Roofline, AMatrixProduct) {
  const std::vector<Row> found = roofline("--filter '^matmul_4096_bf16'");
  ASSERT_EQ(found.size(), 1u);
  const Row& row = found[0];
  EXPECT_NEAR(number(row, "MB"), 3 * 4096.0 * 4096 * 2 / 1e6, 0.1);
  EXPECT_NEAR(number(row, "GFLOP"), 2 * 4096.0 * 4096 * 4096 / 1e9, 0.1);
  EXPECT_NEAR(number(row, "flop/byte"), 4096.0 / 3, 5);
  EXPECT_EQ(row.at("bound"), "product");
  EXPECT_NEAR(number(row, "H200 us"), 137438.953 / 989.4, 0.1);
  EXPECT_NEAR(number(row, "A100-80 us"), 137438.953 / 312, 0.1);
  EXPECT_NEAR(number(row, "H200 measured us"), 137438.953 / 790, 0.1);
}

TEST(Roofline, AStepOfResNet50) {
  const std::vector<Row> found = roofline("--filter '^resnet50'");
  // 3x3, 64 to 64 channels on 56x56.
  const Row conv = only(found, "conv2d_statistics", "bf16[256,56,56,64] bf16[256,56,56,64] bf16[64,3,3,64]");
  const double elements = 256.0 * 56 * 56 * 64;
  EXPECT_EQ(conv.empty() ? "" : conv.at("calls"), "3");  // a block each
  EXPECT_NEAR(number(conv, "MB"), (2 * elements + 64 * 9 * 64) * 2 / 1e6, 0.1);
  EXPECT_NEAR(number(conv, "GFLOP"), 2 * elements * 9 * 64 / 1e9, 0.01);  // and nothing for the statistics
  EXPECT_NEAR(number(conv, "H200 us"), 2 * elements * 9 * 64 / 989.4e6, 0.1);
  EXPECT_NEAR(number(conv, "H100 us"), (2 * elements + 64 * 9 * 64) * 2 / 3.35e6, 0.1);  // there memory is slower
  // The convolution gave the statistics, so batch norm reads its input once and is memory's: the stem's norm, 2 x 2
  // bytes an element.
  const Row norm = only(found, "batch_norm_of_parts", "bf16[3211264,64] bf16[3211264,64] f32[1,129]");
  EXPECT_NEAR(number(norm, "MB"), 2 * 2 * 3211264.0 * 64 / 1e6, 1);
  EXPECT_NEAR(number(norm, "GH200 us"), 2 * 2 * 3211264.0 * 64 / 4.0e6, 1);
  EXPECT_EQ(norm.empty() ? "" : norm.at("bound"), "memory");
  // The published 4.09 GMAC of an image's forward (torchvision's resnet50), and twice as much in backward, without the
  // gradient of the images.
  const Row convs = only(found, "conv2d_statistics", "all");
  EXPECT_NEAR(number(convs, "GFLOP") / 2 / 256, 4.087, 0.002);
  EXPECT_EQ(number(convs, "calls"), 53);
  EXPECT_NEAR(number(only(found, "conv2d_backward_weight", "all"), "GFLOP"), number(convs, "GFLOP"), 1);
  EXPECT_NEAR(number(only(found, "conv2d_backward_input", "all"), "GFLOP"), number(convs, "GFLOP") - 60.42, 1);
  // GFLOP are those of products; operations per byte are also an elementwise kernel's.
  EXPECT_EQ(number(norm, "GFLOP"), 0);
  EXPECT_NEAR(number(norm, "flop/byte"), 1, 0.01);  // 4 an element of 2 + 2 bytes
  const double classifier = 3 * 2 * 256 * 2048.0 * 1000 / 1e9;
  EXPECT_NEAR(number(only(found, "all", "all"), "GFLOP"), 3 * 2 * 256 * 4.087 - 60.42 + classifier, 5);
  // The sum of a step is that of its kernels.
  double sum = 0;
  for (const Row& row : found)
    if (row.at("shapes") == "all" && row.at("kernel") != "all") sum += number(row, "H200 us");
  EXPECT_NEAR(number(only(found, "all", "all"), "H200 us"), sum, 10);
}

TEST(Roofline, AStepOfVitB16) {
  const std::vector<Row> found = roofline("--filter '^vit_b16'");
  // The 17.6 GMAC of one image's forward (Dosovitskiy et al. 2021): patches, 12 blocks with 12 D^2 per token,
  // attention. Backward has twice of it, but no gradient of the images.
  const double T = 197, D = 768, gflop = 2 * 256 / 1e9;  // a multiply-add in each image
  const double patches = 196 * D * 768, blocks = 12 * T * 12 * D * D, head = D * 1000, attention = 12 * 2 * T * T * D;
  EXPECT_NEAR((patches + blocks + head + attention) / 1e9, 17.6, 0.1);
  double products = 0;  // with and without an epilogue
  for (const Row& row : found)
    if (row.at("shapes") == "all" &&
        (row.at("kernel").starts_with("matmul") || row.at("kernel").starts_with("linear_backward")))
      products += number(row, "GFLOP");
  EXPECT_NEAR(products / (gflop * (2 * patches + 3 * blocks + 3 * head)), 1, 0.001);
  EXPECT_NEAR(number(only(found, "attention_forward", "all"), "GFLOP") / (gflop * attention), 1, 0.001);
  // Every linear layer's bias gradient comes with its weight's, and gelu's derivative with the product before it: what
  // is still summed alone are the class token, the positions and the loss, over the images.
  EXPECT_EQ(number(only(found, "linear_backward_weight", "all"), "calls"), 1 + 12 * 4 + 1);
  EXPECT_EQ(number(only(found, "linear_backward_input", "all"), "calls"), 12);
  for (const Row& row : found) {
    EXPECT_NE(row.at("kernel"), "unary_backward");
    if (row.at("kernel") == "reduce" && row.at("shapes") != "all") {
      EXPECT_THAT(row.at("shapes"), testing::ContainsRegex("[[,]256[],]"));
    }
  }
}

TEST(Roofline, JsonHoldsTheSame) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("roofline-" + std::to_string(::getpid()) + ".json")).string();
  const std::vector<Row> found = roofline("--tiny --json " + file);
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(file));
  std::filesystem::remove(file);
  EXPECT_EQ(json["chips"].size(), 4u);
  ASSERT_EQ(json["lines"].size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const nlohmann::json& line = json["lines"][i];
    EXPECT_EQ(line["step"], found[i].at("step"));
    EXPECT_EQ(line["kernel"], found[i].at("kernel"));
    EXPECT_GT(line["bytes"].get<double>(), 0) << line;
    EXPECT_NEAR(line["floor"]["H200"]["data_sheet_us"].get<double>(), number(found[i], "H200 us"),
                1e-3 * number(found[i], "H200 us"));
  }
  const Outcome refused = shell(std::string(BENCH) + " --suite roofline --tiny --filter matmul --json /no/such/file");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("bench: --json: cannot write /no/such/file\n"));
}

TEST(Roofline, AFilterThatMatchesNothingIsToldOf) {
  const Outcome outcome = shell(std::string(BENCH) + " --suite roofline --tiny --filter no_such_kernel");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output, "bench: no kernel of the suite roofline matches. --list prints them all\n");
  const std::string listed = shell(std::string(BENCH) + " --suite roofline --tiny --list --filter '/adam_step'").output;
  EXPECT_EQ(listed.find("vit_b16_b256_train_bf16/adam_step\t"), 0u) << listed;
}

}  // namespace
}  // namespace weft::tests
