// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "nn/models/bert.h"

namespace weft::finetune {

/// The content of a config.json next to Hugging Face's weights.
struct Configuration {
  nn::BertOptions sizes = {};       ///< but for the vocabulary and classes
  int64_t vocabulary = 0;           ///< vocab_size, the rows of the embeddings; 0: it does not say
  int64_t classes = 0;              ///< num_labels, or the entries of id2label; 0: it does not say
  std::vector<std::string> labels;  ///< id2label; empty: none, or LABEL_0, LABEL_1, … that say nothing
  std::string problem = {};         ///< problem_type: `regression`, `single_label_classification`, or ""
  std::string text = {};            ///< the file; "": there is none
};

/// Hugging Face's name for a kind of model: `bert`.
std::string published_type(nn::BertKind kind);

/// `sizes`, as far as a config.json of this folder says otherwise: the kind of model, width, depth, heads and the like,
/// and with `with_dropout` the dropout. Errors: no JSON, contradictions, or settings that Weft's BERT lacks: another
/// architecture, position embeddings that are not absolute, a decoder, several labels a text, …
Configuration read_configuration(const std::filesystem::path& folder, const nn::BertOptions& sizes, bool with_dropout);

/// The configuration written next to the weights of a model.
struct SavedConfiguration {
  std::string from;                 ///< the configuration that it started from, whose other keys stay; "": none
  std::vector<std::string> labels;  ///< names by class; none for a regression
  bool regression = false;
};
std::string configuration_text(const nn::BertOptions& options, const SavedConfiguration& saved);

}  // namespace weft::finetune
