// SPDX-License-Identifier: Apache-2.0
#include "data/text/words.h"

#include "core/text.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

[[noreturn]] void fail_without() {
  fail("words: built without utf8proc. On Debian: apt-get install libutf8proc-dev, then configure again");
}

}  // namespace

std::string normalized_text(std::string_view, const WordOptions&) { fail_without(); }
std::vector<std::string> split_words(std::string_view, const WordOptions&) { fail_without(); }
std::vector<std::string> split_normalized(std::string_view) { fail_without(); }
bool begins_in_word(std::string_view) { fail_without(); }
bool ends_in_word(std::string_view) { fail_without(); }
size_t leading_space(std::string_view) { fail_without(); }
size_t trailing_space(std::string_view) { fail_without(); }
std::vector<std::string_view> split_pieces(std::string_view) { fail_without(); }
std::vector<std::string_view> split_pieces(std::string_view, PiecePattern) { fail_without(); }
std::string composed_text(std::string_view) { fail_without(); }
std::string compatible_text(std::string_view) { fail_without(); }
std::string sole_difference(std::string_view a, std::string_view b) {
  return a != b && lower_case(a) == lower_case(b) ? "case" : "";
}
std::vector<std::string_view> grapheme_clusters(std::string_view) { fail_without(); }

}  // namespace weft::data
