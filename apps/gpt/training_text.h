// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/gpt/gpt_files.h"
#include "apps/gpt/options.h"
#include "data/loader.h"
#include "data/text/chat_template.h"
#include "data/text/documents.h"
#include "data/text/token_numbers.h"
#include "dist/group/process_group.h"

namespace weft::gpt {

/// The bytes of --data: one file, or train.bin and val.bin in a folder.
class TextFiles {
 public:
  /// Errors: a folder without the two files; --rows that does not fit the kind of file.
  explicit TextFiles(const Options& options);

  /// Sizes and checksums, for the comparison among ranks.
  std::string checksums() const;
  /// The tokenizer of --tokenizer. Errors: numbers of tokens as --data without a folder of their tokenizer.
  data::BytePair tokenizer(const Options& options) const;

 private:
  friend class TrainingText;
  std::vector<data::TextExample> examples(const data::ChatTemplate* chat,
                                          const std::vector<data::AddedToken>& ends) const;
  std::string text() const;
  std::vector<int64_t> encode(const data::BytePair& tokenizer) const;
  std::string name(const char* part = "") const;

  std::filesystem::path path_;
  std::shared_ptr<const std::string> train_, val_;  // val: null for one file
  std::optional<std::vector<std::string>> texts_;   // the texts of JSON lines that make one long text
  bool tokens_ = false;                             // numbers of tokens, and no text
  bool examples_ = false;                           // JSON lines, each for itself
};

/// True where --tokenizer auto finds a tokenizer's files beside the weights or the model.
bool has_tokenizer(const Options& options);

/// The sequences of a run: windows of one long text, or rows of documents (JSON lines). The last --val-share of them,
/// or the folder's val.bin, is for validation.
class TrainingText {
 public:
  /// `options.context` is set. Errors: one document alone; documents of which no token is trained.
  TrainingText(const Options& options, const TextFiles& files, const data::BytePair& tokenizer,
               const GptConfig& config);

  /// Batches of this rank in training. `group`: the ranks that divide the data. Errors: a text too short for one step.
  std::shared_ptr<data::BatchQueue> batches(const dist::ProcessGroup& group, Device device) const;
  /// Each token of the validation text once, but for those after the last whole window.
  std::unique_ptr<data::Loader<data::Stacked>> validation(const dist::ProcessGroup& group, Device device) const;
  /// Sequences of an epoch on each of `ranks`: whole steps of `step` sequences.
  int64_t samples(int64_t step, int ranks) const;

  bool is_rows() const { return rows_ != nullptr; }
  /// Rows of several documents, which begin at other places in each batch.
  bool is_packed() const { return packed_; }
  /// Tokens of a sequence, without padding: the mean over the rows.
  double tokens_per_sequence() const;
  /// Tokens of a sequence that have a loss: the mean over the rows.
  double trained_per_sequence() const;
  std::string describe() const;

 private:
  const Options& options_;
  bool packed_ = false;
  data::TokenNumbers train_, val_;
  std::shared_ptr<const data::DocumentRows> rows_, val_rows_;  // in place of train_ and val_
};

}  // namespace weft::gpt
