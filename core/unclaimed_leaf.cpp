// SPDX-License-Identifier: Apache-2.0
#include "core/unclaimed_leaf.h"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "kernels/error.h"

namespace weft {
namespace {

struct Found {
  std::thread::id thread;
  std::string description;
  const char* op;
};

struct List {
  std::mutex mutex;
  std::map<const UnclaimedLeaf*, Found> leaves;
  std::atomic<size_t> count{0};
};
List& list() {
  static List& all = *new List;  // outlives every static tensor
  return all;
}

}  // namespace

UnclaimedLeaf::UnclaimedLeaf(std::string description, const char* op) {
  const std::lock_guard lock(list().mutex);
  list().leaves[this] = {std::this_thread::get_id(), std::move(description), op};
  list().count = list().leaves.size();
}

UnclaimedLeaf::~UnclaimedLeaf() {
  const std::lock_guard lock(list().mutex);
  list().leaves.erase(this);
  list().count = list().leaves.size();
}

void check_no_unclaimed_leaf(const char* who) {
  if (list().count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(list().mutex);
  for (const auto& [leaf, found] : list().leaves)
    WEFT_CHECK(found.thread != std::this_thread::get_id(), who, ": ", found.description, ", an input of ", found.op,
               ", gets gradients that nothing uses: no fields() names it and no optimizer has it, so it is not "
               "trained. Name it in its module's fields(), or call requires_grad_(false)");
}

}  // namespace weft
