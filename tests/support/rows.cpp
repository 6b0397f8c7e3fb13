// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rows.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>

namespace weft::tests {
namespace {

/// Rows of the running test; written at its end.
class Rows : public testing::EmptyTestEventListener {
 public:
  explicit Rows(std::string path) : path_(std::move(path)) {}

  void add(const std::vector<std::string>& cells) {
    std::string row;
    for (const std::string& cell : cells) row += row.empty() ? cell : '\t' + cell;
    const std::lock_guard lock(mutex_);
    rows_.insert(row);
  }

 private:
  void OnTestStart(const testing::TestInfo&) override { rows_.clear(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Passed()) return;
    std::ofstream file(path_, std::ios::app);
    for (const std::string& row : rows_) file << row << '\n';
    if (!file.flush()) ADD_FAILURE() << "cannot write " << path_;
  }

  std::string path_;
  std::mutex mutex_;
  std::set<std::string> rows_;
};

/// Null where nobody asks; GoogleTest owns it.
Rows* make_rows() {
  const char* const path = std::getenv("WEFT_TEST_ROWS");
  if (!path) return nullptr;
  Rows* const rows = new Rows(path);
  testing::UnitTest::GetInstance()->listeners().Append(rows);
  return rows;
}

Rows* const rows = make_rows();

}  // namespace

void add_row(std::vector<std::string> cells) {
  if (rows) rows->add(cells);
}

}  // namespace weft::tests
