// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

namespace weft::tests {
namespace {

/// Rows of the running test; written at its end.
class Rows : public testing::EmptyTestEventListener {
 public:
  explicit Rows(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }

  void add(const std::vector<std::string>& cells) {
    std::string row;
    for (const std::string& cell : cells) row += row.empty() ? cell : '\t' + cell;
    const std::lock_guard lock(mutex_);
    rows_.insert(row);
  }

 private:
  void OnTestStart(const testing::TestInfo&) override { rows_.clear(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::string name = std::string(test.test_suite_name()) + '.' + test.name();
    std::replace(name.begin(), name.end(), '/', '.');
    std::ofstream file(folder_ / name);
    if (test.result()->Passed())
      for (const std::string& row : rows_) file << row << '\n';
    if (!file.flush()) ADD_FAILURE() << "cannot write " << folder_ / name;
  }

  std::filesystem::path folder_;
  std::mutex mutex_;
  std::set<std::string> rows_;
};

/// Null where nobody asks; GoogleTest owns it.
Rows* make_rows() {
  const char* const folder = std::getenv("WEFT_TEST_ROWS");
  if (!folder) return nullptr;
  Rows* const rows = new Rows(folder);
  testing::UnitTest::GetInstance()->listeners().Append(rows);
  return rows;
}

Rows* const rows = make_rows();

}  // namespace

void add_row(std::vector<std::string> cells) {
  if (rows) rows->add(cells);
}

}  // namespace weft::tests
