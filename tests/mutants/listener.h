// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "tests/mutants/choice.h"

namespace weft::mutants {

/// Logs how long each test takes, and names the running test to choice.h. tools/mutants adds a source with this header
/// to each test program.
class Listener : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& test) override {
    ::setenv("WEFT_MUTANT_TEST", (std::string(test.test_suite_name()) + "." + test.name()).c_str(), 1);
    ++tests_begun;
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    log_line(test.result()->Failed() ? "failed" : "ended", test.result()->elapsed_time());
    ::unsetenv("WEFT_MUTANT_TEST");
  }
};

inline const bool is_listening = [] {
  if (std::getenv("WEFT_MUTANT_LOG")) testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace weft::mutants
