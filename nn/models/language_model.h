// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "nn/embedding.h"
#include "nn/staged.h"
#include "nn/transformer.h"

namespace weft::nn {

/// A model that says the next token after each of ids i64 [N, tokens]: logits [N, tokens, vocabulary]. With ids
/// i64 [N, 2, tokens], beside each id is where in the row its document begins: several documents share a row, and none
/// sees another (see Documents).
struct LanguageModel : Module, Staged {
  /// Tokens of the longest sequence.
  virtual int64_t positions() const = 0;
  /// The table of the tokens.
  virtual const Embedding& embedding() const = 0;
  /// forward() for tokens after `past`, which has an entry per block; an empty `past` begins. `padding`: how many tokens
  /// at the beginning of each row, those of `past` included, are none: nobody sees them, and positions begin after
  /// them; empty: 0. Errors: divided blocks.
  virtual Tensor extend(const Tensor& ids, std::vector<KeysAndValues>& past,
                        const std::vector<int64_t>& padding = {}) const = 0;

  Tensor forward(const Tensor& ids) const override { return run({0, layers()}, ids, ids); }

 protected:
  /// Ids, and what blocks know of their rows.
  struct Ids {
    Tensor ids;
    TokenRows rows;
  };
  /// `sample`: i64 [N, tokens], or with documents i64 [N, 2, tokens]. Errors: other sizes.
  Ids read_ids(const Tensor& sample) const;
  /// bool [N, tokens]: the tokens after the padding; none without padding. Errors: other numbers of rows or tokens.
  static Tensor mask_of(const std::vector<int64_t>& padding, int64_t rows, int64_t tokens, Device device);
};

struct GenerateOptions {
  int64_t tokens = 100;        ///< new ones
  double temperature = 1;      ///< logits are divided by it; 0: the likeliest token
  int64_t top_k = 0;           ///< only this number of the likeliest tokens; 0: all
  std::vector<int64_t> end{};  ///< the tokens that end the text early, such as BytePair::end_of_text()
  int64_t below = 0;           ///< draw only tokens below it, where the vocabulary is padded; 0: all
  double top_p = 1;            ///< only the likeliest tokens whose shares reach this sum (Holtzman et al. 2019)
};

/// Tokens that follow `prompt`, drawn by the CPU's generator (manual_seed() makes them repeat); `each` gets every token
/// at once. Keys and values of earlier tokens are kept; where the positions are used up, the later half of
/// the text goes on as a new one. The model is in evaluation mode. Errors: an empty prompt, a temperature below 0, a
/// top_p outside of (0, 1].
std::vector<int64_t> generate(const LanguageModel& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options = {}, const std::function<void(int64_t)>& each = {});

/// generate() for several prompts at once; result i is what prompt i alone would get with the same numbers of the
/// generator. `each` gets the number of the prompt and the token; false ends its text. Errors: no prompt, and as above.
std::vector<std::vector<int64_t>> generate_batch(const LanguageModel& model,
                                                 const std::vector<std::vector<int64_t>>& prompts,
                                                 const GenerateOptions& options = {},
                                                 const std::function<bool(size_t, int64_t)>& each = {});

}  // namespace weft::nn
