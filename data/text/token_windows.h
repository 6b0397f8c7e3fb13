// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "data/text/token_numbers.h"

namespace weft::data {

/// Sequences of one long text for a model of the next token: sample i is the tokens of a window, i64 [length], and of
/// the window a place later, i64 [length]. Windows begin `stride` tokens apart: 1 gives every place of the text (for
/// training, with a Sampler that shuffles), `length` each token once (for evaluation).
class TokenWindows {
 public:
  /// Errors: length or stride below 1, a text that is too short for one window.
  TokenWindows(TokenNumbers tokens, int64_t length, int64_t stride)
      : tokens_(std::move(tokens)), length_(length), stride_(stride) {
    WEFT_CHECK(length > 0 && stride > 0, "token windows: expected a positive length and stride, got ", length, " and ",
               stride);
    WEFT_CHECK(size() > 0, "token windows: expected a text of more than ", length, " tokens, got ", tokens_.size());
  }
  TokenWindows(const std::shared_ptr<const std::vector<int64_t>>& tokens, int64_t length, int64_t stride)
      : TokenWindows(TokenNumbers(tokens), length, stride) {}

  int64_t size() const {
    const int64_t last = tokens_.size() - 1 - length_;  // where the last window may begin
    return last < 0 ? 0 : last / stride_ + 1;
  }
  /// i64 [length] from token index * stride on, and its targets, a token later.
  std::tuple<Tensor, Tensor> get(int64_t index) const {
    WEFT_CHECK(index >= 0 && index < size(), "token windows: expected an index below ", size(), ", got ", index);
    return {tokens_.tensor(index * stride_, length_), tokens_.tensor(index * stride_ + 1, length_)};
  }

 private:
  TokenNumbers tokens_;
  int64_t length_, stride_;
};

}  // namespace weft::data
