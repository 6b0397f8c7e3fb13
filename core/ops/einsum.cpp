// SPDX-License-Identifier: Apache-2.0
#include "core/ops/einsum.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/trace.h"

namespace weft {
namespace {

/// A tensor with a letter for each dimension.
struct Term {
  Tensor x;
  std::string letters;
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

/// Sums over the letters that `wanted` lacks.
Term summed(Term term, const std::string& wanted) {
  std::vector<int64_t> dims;
  std::string left;
  for (size_t d = 0; d < term.letters.size(); ++d) {
    if (has(wanted, term.letters[d]))
      left += term.letters[d];
    else
      dims.push_back(static_cast<int64_t>(d));
  }
  return dims.empty() ? term : Term{sum(term.x, dims), left};
}

/// With the diagonals that letters twice in a term mean.
Term without_repeats(Term term) {
  for (size_t d = 0; d < term.letters.size(); ++d)
    for (size_t other; (other = term.letters.find(term.letters[d], d + 1)) != std::string::npos;) {
      const auto last = static_cast<int64_t>(term.letters.size()) - 1;
      term.letters.erase(other, 1);
      term.letters += term.letters[d];
      term.letters.erase(d, 1);
      Shape order;
      for (int64_t k = 0; k <= last; ++k)
        if (k != static_cast<int64_t>(d) && k != static_cast<int64_t>(other)) order.push_back(k);
      order.push_back(static_cast<int64_t>(d));
      order.push_back(static_cast<int64_t>(other));
      term.x = diagonal(term.x.permute(order));
    }
  return term;
}

/// x with its dimensions in the order of `letters`.
Tensor ordered(const Term& term, const std::string& letters) {
  Shape order;
  for (const char letter : letters) order.push_back(static_cast<int64_t>(term.letters.find(letter)));
  return term.x.permute(order);
}

/// The product of two terms, summed over what they share and `wanted` lacks: one batched matmul.
Term product(const Term& first, const Term& second, const std::string& wanted) {
  const Term a = summed(first, wanted + second.letters), b = summed(second, wanted + first.letters);
  std::string batch, rows, depth, columns;
  for (const char letter : a.letters) (!has(b.letters, letter) ? rows : has(wanted, letter) ? batch : depth) += letter;
  for (const char letter : b.letters)
    if (!has(a.letters, letter)) columns += letter;
  Shape sizes;
  std::array<int64_t, 4> counts{1, 1, 1, 1};  // sizes: batch, rows, depth, columns
  const auto count = [&](const Term& term, const std::string& letters, size_t to) {
    for (const char letter : letters) {
      const int64_t size = term.x.size(static_cast<int64_t>(term.letters.find(letter)));
      counts[to] *= size;
      if (to != 2) sizes.push_back(size);
    }
  };
  count(a, batch, 0), count(a, rows, 1), count(a, depth, 2), count(b, columns, 3);
  const auto [B, M, K, N] = counts;
  const Tensor y = matmul(ordered(a, batch + rows + depth).reshape({B, M, K}),
                          ordered(b, batch + depth + columns).reshape({B, K, N}));
  return {y.reshape(sizes), batch + rows + columns};
}

constexpr std::string_view kEllipsis = "...";

/// Replaces "..." in `text` by letters that it does not have. Tensors lose the dimensions of size 1 that broadcast.
void name_ellipses(std::string& text, std::vector<Tensor>& tensors) {
  if (text.find(kEllipsis) == std::string::npos) return;
  const bool has_result = text.find("->") != std::string::npos;
  std::vector<size_t> at, counts;  // where each tensor's ellipsis begins in its term, and how many dimensions it means
  size_t start = 0, most = 0;
  std::vector<std::string> terms;
  const std::string inputs = text.substr(0, text.find("->"));
  for (size_t i = 0; i < tensors.size() && start <= inputs.size(); ++i) {
    const size_t end = std::min(inputs.find(',', start), inputs.size());
    terms.push_back(inputs.substr(start, end - start));
    start = end + 1;
    at.push_back(terms[i].find(kEllipsis));
    const auto rank = static_cast<size_t>(tensors[i].defined() ? tensors[i].dim() : 0);
    const size_t named = terms[i].size() - (at[i] == std::string::npos ? 0 : kEllipsis.size());
    WEFT_CHECK(named <= rank, "einsum: expected a letter for each dimension of ", tensors[i], ", got \"", terms[i],
               "\"");
    counts.push_back(at[i] == std::string::npos ? 0 : rank - named);
    most = std::max(most, counts[i]);
  }
  WEFT_CHECK(terms.size() == tensors.size() && start > inputs.size(), "einsum: \"", text, "\" does not name ",
             tensors.size(), " tensors");
  std::string letters;
  for (char letter = 'A'; letter <= 'z' && letters.size() < most; ++letter)
    if (std::isalpha(static_cast<unsigned char>(letter)) && !has(text, letter)) letters += letter;
  WEFT_CHECK(letters.size() == most, "einsum: \"", text, "\" has too few letters left for its ellipses");
  std::string named, result = has_result ? text.substr(text.find("->") + 2) : "";
  const std::vector<Tensor> whole = tensors;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string own;
    int64_t dim = static_cast<int64_t>(std::min(at[i], terms[i].size()));
    for (size_t d = most - counts[i]; d < most; ++d) {
      bool broadcasts = false;  // another tensor has more there
      for (size_t other = 0; other < terms.size(); ++other)
        broadcasts |= most - d <= counts[other] && tensors[i].size(dim) == 1 &&
                      whole[other].size(static_cast<int64_t>(at[other] + d - (most - counts[other]))) > 1;
      if (broadcasts)
        tensors[i] = tensors[i].squeeze(dim);
      else
        own += letters[d], ++dim;
    }
    if (at[i] != std::string::npos) terms[i].replace(at[i], kEllipsis.size(), own);
    named += (i > 0 ? "," : "") + terms[i];
  }
  if (!has_result) {
    result = letters;
    for (char letter = 'A'; letter <= 'z'; ++letter)
      if (letter != ',' && !has(letters, letter) && std::count(named.begin(), named.end(), letter) == 1)
        result += letter;
  } else if (const size_t dots = result.find(kEllipsis); dots != std::string::npos) {
    result.replace(dots, kEllipsis.size(), letters);
  }
  text = named + "->" + result;
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& given) {
  const OpScope scope("einsum");
  std::string text(equation);
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  std::vector<Tensor> tensors = given;
  name_ellipses(text, tensors);
  const size_t arrow = text.find("->");
  std::string inputs = text.substr(0, arrow), result;
  std::vector<Term> terms;
  std::array<int64_t, 256> size_of_letter;
  size_of_letter.fill(-1);
  for (size_t start = 0; start <= inputs.size();) {
    const size_t end = std::min(inputs.find(',', start), inputs.size());
    const std::string letters = inputs.substr(start, end - start);
    start = end + 1;
    WEFT_CHECK(terms.size() < tensors.size(), "einsum: \"", equation, "\" names more than the ", tensors.size(),
               " tensors given");
    const Tensor& x = tensors[terms.size()];
    WEFT_CHECK(x.defined() && x.dim() == static_cast<int64_t>(letters.size()),
               "einsum: expected a letter for each dimension of ", x, ", got \"", letters, "\"");
    for (size_t d = 0; d < letters.size(); ++d) {
      const char letter = letters[d];
      WEFT_CHECK(std::isalpha(static_cast<unsigned char>(letter)), "einsum: expected letters, got '", letter, "' in \"",
                 equation, "\"");
      int64_t& size = size_of_letter[static_cast<unsigned char>(letter)];
      const int64_t here = x.size(static_cast<int64_t>(d));
      WEFT_CHECK(size == -1 || size == here, "einsum: '", letter, "' of \"", equation, "\" has the sizes ", size,
                 " and ", here);
      size = here;
    }
    terms.push_back(without_repeats({x, letters}));
  }
  WEFT_CHECK(terms.size() == tensors.size() && !terms.empty(), "einsum: \"", equation, "\" names ", terms.size(),
             " tensors, got ", tensors.size());
  if (arrow != std::string::npos) {
    result = text.substr(arrow + 2);
  } else {
    for (char letter = 'A'; letter <= 'z'; ++letter)
      if (std::count(inputs.begin(), inputs.end(), letter) == 1 && letter != ',') result += letter;
  }
  for (size_t i = 0; i < result.size(); ++i)
    WEFT_CHECK(
        std::isalpha(static_cast<unsigned char>(result[i])) && has(inputs, result[i]) && result.find(result[i]) == i,
        "einsum: '", result[i], "' of the result of \"", equation, "\" stands in no tensor, or twice");
  Term done = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string wanted = result;  // letters that later products or the result need
    for (size_t later = i + 1; later < terms.size(); ++later) wanted += terms[later].letters;
    done = product(done, terms[i], wanted);
  }
  return ordered(summed(done, result), result);
}

}  // namespace weft
