// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "io/seal.h"
#include "tests/io/random_state.h"
#include "tests/train/temporary_folder.h"

namespace weft::test {

inline Checkpoint random_checkpoint(std::mt19937_64& random) {
  Checkpoint c;
  c.parts = {{"model", random_state(random)}, {"optimizer", random_state(random)}, {"empty", {}}};
  c.parts[1].second.scalars = {{"lr", 0.1}, {"step", 60}};
  c.integers = {{"step", 60}, {"seed", static_cast<int64_t>(random())}};
  c.numbers = {{"best_accuracy", 0.1 + 0.2}, {"worst", -INFINITY}};
  c.texts = {{"model", "resnet20"},
             {"config", "lr = 0.1\nname = \"ä\"\n"},
             {"nothing", ""},
             {"long", std::string(200000, 'x')}};
  return c;
}

inline void expect_same(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (size_t i = 0; i < a.parts.size(); ++i) {
    EXPECT_EQ(a.parts[i].first, b.parts[i].first);
    expect_same_tensors(a.parts[i].second, b.parts[i].second);
    for (size_t j = 0; j < a.parts[i].second.tensors.size(); ++j)  // the order stays, too
      EXPECT_EQ(a.parts[i].second.tensors[j].name, b.parts[i].second.tensors[j].name);
    ASSERT_EQ(a.parts[i].second.scalars.size(), b.parts[i].second.scalars.size());
    for (const NamedScalar& s : a.parts[i].second.scalars) EXPECT_EQ(b.parts[i].second.scalar(s.name), s.value);
  }
  EXPECT_EQ(a.integers, b.integers);
  EXPECT_EQ(a.numbers, b.numbers);
  EXPECT_EQ(a.texts, b.texts);
}

/// The error of loading a checkpoint, without its path.
inline std::string load_error(const std::string& path) {
  const std::string text = error_of([&] { load_checkpoint(path); });
  const std::string start = "checkpoint: " + path + ": ";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

/// Replaces the content of a checkpoint and gives it a seal that fits.
inline void write_sealed(const std::string& path, const std::string& content) {
  AtomicFile file(path, "test");
  write_file(file.temporary(), content);
  seal(file);
  file.commit();
}

}  // namespace weft::test
