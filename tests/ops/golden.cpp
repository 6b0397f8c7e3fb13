// SPDX-License-Identifier: Apache-2.0
// Each row against PyTorch: y and the gradients of inputs whose seed is the row's name. tests/golden/generate.py has
// this program write the inputs, and keeps PyTorch's results in tests/golden/ops.safetensors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <set>

#include "core/ops/unary.h"
#include "core/random.h"
#include "tests/golden/digest.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

/// The inputs of a row and the gradient of its result.
struct GoldenProblem {
  std::vector<Tensor> inputs;
  Tensor dy;
};

/// FNV-1a of the name (Fowler, Noll and Vo).
uint64_t seed_of(const std::string& name) {
  uint64_t seed = 14695981039346656037U;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return seed;
}

GoldenProblem golden_problem(const OpCase& op) {
  std::mt19937_64 random(seed_of(op.name));
  GoldenProblem problem{make_inputs(op, random), {}};
  manual_seed(7);
  problem.dy = draw({op.function(problem.inputs).sizes()}, random);
  return problem;
}

bool has_expression(const OpCase& op) { return !op.torch.starts_with('#'); }

/// The parts of the file for a row: its result, and the gradient of each input that has one.
std::vector<std::string> golden_names(const OpCase& op) {
  std::vector<std::string> names{op.name + ".y"};
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool floating = op.inputs[i].values != Values::classes && op.inputs[i].values != Values::boolean;
    names.push_back(op.derivative != Derivative::none && floating && op.inputs[i].gradient ? str(op.name, ".d", i)
                                                                                           : "");
  }
  return names;
}

const golden::File& golden_ops() {
  static const golden::File file("ops");
  return file;
}

void expect_golden(const Tensor& got, const std::string& name) {
  const Tensor& expected = golden_ops()[name];
  if (got.numel() > 1024)
    golden::expect_digest(got, expected, 0, name);
  else
    golden::expect_close(got, expected, name, golden::tolerance_of(DType::f64));
}

void expect_pytorchs(const OpCase& op) {
  const GoldenProblem problem = golden_problem(op);
  const std::vector<std::string> names = golden_names(op);
  for (const Device device : case_devices()) {
    SCOPED_TRACE(str("on ", device));
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < problem.inputs.size(); ++i)
      inputs.push_back(place(problem.inputs[i], op.inputs[i], DType::f64, device));
    const Outcome got = run_case(op, inputs, problem.dy);
    expect_golden(got.y, names[0]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (names[i + 1].empty()) continue;
      const Tensor& gradient = got.gradients[i];
      expect_golden(gradient.defined() ? gradient : zeros_like(inputs[i]), names[i + 1]);
    }
  }
  note(op, {}, DType::f64, "golden");
}

/// The rows whose names begin with one word, the parameter.
class Golden : public testing::TestWithParam<std::string> {};

std::string first_word(const OpCase& op) { return op.name.substr(0, op.name.find('_', 1)); }

TEST_P(Golden, EqualsPyTorch) {
  std::string lacking;
  for (const OpCase& op : op_cases()) {
    if (first_word(op) != GetParam() || !has_expression(op)) continue;
    if (op.needs.empty())
      expect_pytorchs(op);
    else
      lacking = op.needs;
  }
  if (!lacking.empty()) GTEST_SKIP() << "needs a build with " << lacking << "; this one has its stub";
}

std::set<std::string> golden_words() {
  std::set<std::string> words;
  for (const OpCase& op : op_cases())
    if (has_expression(op)) words.insert(first_word(op));
  return words;
}

INSTANTIATE_TEST_SUITE_P(Ops, Golden, testing::ValuesIn(golden_words()), [](const auto& test) { return test.param; });

TEST(GoldenFile, HasEveryRowAndNothingElse) {
  std::set<std::string> names;
  int reasons = 0;
  for (const OpCase& op : op_cases()) {
    EXPECT_FALSE(op.torch.empty()) << op.name << ": PyTorch's expression, or # and why there is none";
    if (has_expression(op))
      for (const std::string& name : golden_names(op)) names.insert(name);
    else
      ++reasons;
  }
  names.erase("");
  for (const std::string& name : names) EXPECT_TRUE(golden_ops().has(name)) << name << ": tests/golden/generate.py ops";
  for (const auto& [name, tensor] : golden_ops().tensors()) EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_LE(reasons, 15) << "rows that PyTorch does not check";
}

// For generate.py: a line of JSON for each row.
TEST(GoldenFile, WritesTheRows) {
  const char* const path = std::getenv("WEFT_OP_CASES");
  if (path == nullptr) GTEST_SKIP() << "needs WEFT_OP_CASES, a file to write";
  std::ofstream out(path);
  for (const OpCase& op : op_cases()) {
    if (!has_expression(op)) continue;
    ASSERT_EQ(op.needs, "") << op.name << ": a build with all parts writes the rows";
    const GoldenProblem problem = golden_problem(op);
    const std::vector<std::string> names = golden_names(op);
    out << R"({"name":)" << std::quoted(op.name) << R"(,"torch":)" << std::quoted(op.torch) << R"(,"inputs":[)";
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      const Tensor& x = problem.inputs[i];
      out << (i ? "," : "") << R"({"dtype":")" << x.dtype() << R"(","sizes":)" << x.sizes() << R"(,"values":)"
          << json_list(x.to_vector<double>()) << R"(,"gradient":")" << names[i + 1] << R"("})";
    }
    out << R"(],"dy":)" << json_list(problem.dy.to_vector<double>()) << "}\n";
  }
  ASSERT_TRUE(out.flush());
}

}  // namespace
}  // namespace weft::test
