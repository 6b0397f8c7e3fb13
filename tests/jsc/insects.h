// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {

inline std::string golden_image(const std::string& name) { return std::string(WEFT_GOLDEN) + "/images/" + name; }

inline void place(const std::string& image, const std::filesystem::path& to) {
  std::filesystem::create_directories(to.parent_path());
  std::filesystem::copy_file(golden_image(image), to);
}

/// ROOT/train with five images of ants and bees, ROOT/val with three; where asked, ROOT/test with two.
inline std::string make_insects(const std::string& root, bool test = false) {
  const std::filesystem::path at = root;
  place("baseline.jpg", at / "train/ants/a.jpg");
  place("progressive.jpg", at / "train/ants/b.jpg");
  place("chroma420.JPEG", at / "train/bees/c.JPEG");
  place("grey.jpg", at / "train/bees/d.jpg");
  place("exif6.jpg", at / "train/bees/e.jpg");
  place("exif3.jpg", at / "val/ants/f.jpg");
  place("baseline.jpg", at / "val/bees/g.jpg");
  place("grey.jpg", at / "val/bees/h.jpg");
  if (test) {
    place("exif8.jpg", at / "test/ants/i.jpg");
    place("grey.jpg", at / "test/bees/j.jpg");
  }
  return root;
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline const std::string kElapsed = "elapsed: 00 hours [0-9][0-9] min [0-9][0-9] sec";

inline void expect_refusal(const Outcome& outcome, int code, const std::string& text) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.output;
  EXPECT_THAT(outcome.output, testing::HasSubstr(text));
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
}

}  // namespace weft::tests

/// Skips, loudly, where this build has the stub of a part.
#define WEFT_NEED(PART) \
  if (!WEFT_HAVE_##PART) GTEST_SKIP() << "needs a build with " #PART "; this one has its stub"
