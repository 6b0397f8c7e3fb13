// SPDX-License-Identifier: Apache-2.0
// Input: which tokenizer, length of its vocabulary, that file, for byte pairs length of the merges, those, then a text
// to encode. Byte pairs must give it back, whatever the vocabulary.
#include "data/text/byte_pair.h"
#include "data/text/roberta_pairs.h"
#include "data/text/wordpiece.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

namespace {

void encode(const data::TextEncoder& tokens, const std::string& text) {
  const size_t half = text.size() / 2;
  for (const data::Encoding& encoding :
       {tokens.encode(text, 64), tokens.encode(text.substr(0, half), text.substr(half), 64)})
    for (const int64_t id : encoding.ids)
      if (id < 0 || id >= tokens.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  const int kind = input.byte() % 3;
  const auto vocabulary = folder.write("vocabulary", input.take(input.word()));
  if (kind == 0) {
    const std::string text = input.text();
    fuzz::expect_value_or_error([&] { encode(data::WordPiece::from_file(vocabulary), text); });
    return 0;
  }
  const auto merges = folder.write("merges", input.take(input.word()));
  const std::string text = input.text();
  fuzz::expect_value_or_error([&] {
    data::BytePair tokens = data::BytePair::from_files(vocabulary, merges);
    if (tokens.decode(tokens.encode(text)) != text) std::abort();
    if (kind == 2) encode(data::RobertaPairs(std::move(tokens)), text);
  });
  return 0;
}
