// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/added_tokens.h"
#include "data/text/metaspace.h"
#include "data/text/words.h"

namespace weft::data {

/// The byte-level byte-pair encoding of GPT-2 (Radford et al. 2019, section 2.2; Sennrich et al. 2016), Llama-3, Qwen
/// and SmolLM: a text is cut at its special tokens, then into pieces (split_pieces()), a piece into bytes. Repeatedly,
/// the pair of neighbours that is first in the list of merges becomes a token. Any bytes can be encoded, and decode()
/// returns them; Qwen's text returns in normal form C.
/// The byte pairs of sentencepiece (Llama-2, Mistral) are as well: `▁` stands for a space, the pieces are characters,
/// and the bytes of a character without a token are tokens.
class BytePair {
 public:
  /// The published files: vocab.json (also called encoder.json), which gives each token its id, and merges.txt
  /// (vocab.bpe), a pair a line. Errors: a file cannot be read, an id twice, a merge of tokens or to a token that the
  /// vocabulary lacks, with its line.
  static BytePair from_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);
  /// tokenizer.json of a folder, or else vocab.json and merges.txt, or encoder.json and vocab.bpe. The special tokens
  /// are those of tokenizer.json, tokenizer_config.json, special_tokens_map.json and added_tokens.json, and
  /// `<|endoftext|>`. Errors: no such file is there; the entry that asks for another tokenizer than these; as above.
  static BytePair from_folder(const std::filesystem::path& folder);
  /// A token for each byte of the text, in the order of the bytes, without merges: of an ASCII text its characters.
  static BytePair of_bytes(std::string_view text);

  /// Ids are below it. A vocabulary may leave some out.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  /// The id of `<|endoftext|>`, which parts documents; -1: the vocabulary has none.
  int64_t end_of_text() const;
  /// The id of the token that a text begins with by the files, such as Llama-3's; encode() leaves it out. -1: none.
  int64_t begin_of_text() const { return begin_; }
  /// The id of a token that the files write like this; -1: there is none.
  int64_t find(std::string_view token) const;

  /// The tokens that are searched in a text before it is cut.
  const std::vector<AddedToken>& added_tokens() const { return special_.tokens(); }

  /// Sets special tokens in addition to the files'. A token that the vocabulary lacks is left out.
  void set_special(std::initializer_list<std::string_view> tokens);

  /// A special token that is written out in the text is that token, as with Hugging Face's tokenizers. Errors: a byte
  /// that the vocabulary lacks; with merges of bytes, built without utf8proc.
  /// A text that follows `before` gets no `▁` at its begin.
  std::vector<int64_t> encode(std::string_view text, std::string_view before = {}) const;
  /// The bytes of the tokens; a token's bytes need not be whole characters. Sentencepiece's first space goes, unless
  /// the text `continues` another. Errors: an id of no token.
  std::string decode(std::span<const int64_t> ids, bool continues = false) const;

  /// Writes the files that from_folder() read, as they were; of_bytes(): vocab.json, merges.txt and
  /// tokenizer_config.json.
  void save(const std::filesystem::path& folder) const;

 private:
  struct Merge {
    int64_t rank, merged;
  };
  struct Encoder;
  explicit BytePair(std::vector<std::string> tokens, Metaspace metaspace = Metaspace::absent);
  static BytePair from_tokenizer_json(const std::filesystem::path& path);
  void read_special_tokens(const std::filesystem::path& folder);
  void add_merge(std::string_view left, std::string_view right);
  void add_named(AddedToken token, const std::string& file);
  std::string read(std::string_view written) const;
  std::string written(std::string_view token) const;
  std::string marked(std::string_view part, bool first, std::string_view before) const;

  std::vector<std::string> tokens_;  // bytes by id (sentencepiece's: as written); empty: no such id
  std::unordered_map<std::string, int64_t> ids_;
  std::unordered_map<uint64_t, Merge> merges_;  // key: both ids, left << 32 | right
  std::vector<AddedToken> named_;               // from the files
  AddedTokens special_;                         // and the others
  bool prefix_space_ = false;                   // a text that begins with no space gets one
  bool composes_ = false;                       // the text is encoded in its normal form C
  bool whole_pieces_ = false;                   // a piece that is a token is not merged
  PiecePattern pattern_ = PiecePattern::gpt2;
  Metaspace metaspace_ = Metaspace::absent;  // absent: byte-level
  bool strips_space_ = false;                // decode() takes away the first space
  bool merges_words_ = false;                // a merge has `▁` after another character
  int64_t begin_ = -1;
  std::map<std::string, std::string> files_;  // content by name
};

}  // namespace weft::data
