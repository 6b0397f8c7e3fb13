// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/tensor.h"
#include "data/text/byte_pair.h"
#include "data/text/chat_template.h"

namespace weft::data {

/// A line of a JSON Lines file for a language model, as parts: `{"text": …}`, one answer; `{"prompt": …,
/// "completion": …}`; `{"messages": [{"role": …, "content": …}, …]}`, perhaps with `tools`, by the template.
struct TextExample {
  std::vector<TextPart> parts;
  bool conversation = false;  ///< its template writes its beginning and end
};

/// The examples of the lines; nothing if the first line is none. `what` begins the errors: a later line that is none,
/// with its number; messages without a template; see ChatTemplate::parts(), also about `ends`.
std::optional<std::vector<TextExample>> text_examples(std::string_view bytes, const std::string& what,
                                                      const ChatTemplate* chat, const std::vector<AddedToken>& ends);

enum class JsonLines : uint8_t { none, texts, examples };
/// The kind of the first line: no such object, a `text` alone, or one of the others of text_examples().
JsonLines kind_of_json_lines(std::string_view bytes);
/// For bytes of JsonLines::none that are to be one long text. Errors: a name that ends in .json, .jsonl or .ndjson; JSON's
/// object or list in the first line, unless the name ends in .txt. `what` begins the message.
void refuse_other_json(std::string_view bytes, const std::filesystem::path& file, const std::string& what);

/// The tokens of a document, and which of them a model is to say.
struct TokenDocument {
  std::vector<int64_t> tokens;
  std::vector<bool> trained;
};

/// The tokens of an example. Parts are encoded alone, as prompts are. A text or a completion
/// gets the tokenizer's begin_of_text() and, as its last answer, `end` (-1: none). `all`: every token but the first is
/// trained.
TokenDocument encode_example(const TextExample& example, const BytePair& tokenizer, int64_t end, bool all);

/// Rows of documents for a model of the next token: a sample is ids with the starts of their documents, i64
/// [2, length] (LanguageModel), and the next tokens, i64 [length]. These are -100 where nothing is trained.
class DocumentRows {
 public:
  enum class Fill : uint8_t {
    packed,  ///< the longest document that fits the row, again and again (best fit decreasing: Ding et al. 2024)
    single,  ///< one document a row, without the starts: ids i64 [length]
  };
  /// Documents of more than length + 1 tokens lose their ends; those of which nothing is trained are left out. Errors:
  /// a length below 1; nothing is trained.
  DocumentRows(std::vector<TokenDocument> documents, int64_t length, Fill fill);

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  std::tuple<Tensor, Tensor> get(int64_t index) const;
  int64_t trained() const { return trained_; }  ///< tokens that are trained, in all rows
  int64_t tokens() const { return tokens_; }    ///< tokens of all rows, without what is left out
  int64_t cut() const { return cut_; }          ///< documents that lost their end
  int64_t left_out() const { return left_out_; }

 private:
  std::vector<TokenDocument> documents_;
  std::vector<std::vector<size_t>> rows_;
  int64_t length_, trained_ = 0, tokens_ = 0, cut_ = 0, left_out_ = 0;
  Fill fill_;
};

}  // namespace weft::data
