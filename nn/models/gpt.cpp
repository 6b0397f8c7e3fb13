// SPDX-License-Identifier: Apache-2.0
#include "nn/models/gpt.h"

#include <algorithm>
#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/text.h"

namespace weft::nn {
namespace {

struct GptSize {
  const char* name;
  int64_t positions, width, depth, heads;
};

constexpr GptSize kGptSizes[] = {
    {"gpt2", 1024, 768, 12, 12},     {"gpt2_medium", 1024, 1024, 24, 16}, {"gpt2_large", 1024, 1280, 36, 20},
    {"gpt2_xl", 1024, 1600, 48, 25}, {"gpt_mini", 256, 384, 6, 6},        {"gpt_tiny", 64, 128, 4, 4},
};

int64_t hidden_of(const GptOptions& options) { return options.hidden > 0 ? options.hidden : 4 * options.width; }

constexpr LinearOptions kGptLinear{.init = Init::transformer};

/// A block that no ranks share. Errors: ranks share the block.
const GptBlock& whole_block(const Module& block) {
  const auto* const whole = dynamic_cast<const GptBlock*>(&block);
  WEFT_CHECK(whole, "Gpt: expected whole blocks for text that goes on, got ", block.kind());
  return *whole;
}

}  // namespace

GptBlock::GptBlock(const GptOptions& options)
    : ln_1(options.width, options.eps),
      attn(options.width, options.heads, {.dropout = options.dropout}),
      ln_2(options.width, options.eps),
      c_fc(options.width, hidden_of(options), kGptLinear),
      c_proj(hidden_of(options), options.width, kGptLinear),
      dropout(options.dropout),
      gelu(options.gelu) {
  const double std = 0.02 / std::sqrt(2 * static_cast<double>(options.depth));
  init_normal_(attn.proj.weight.detach(), std);
  init_normal_(c_proj.weight.detach(), std);
  ln_1.feeds_product = ln_2.feeds_product = true;
}

Tensor GptBlock::add_branches(const Tensor& x, const Tensor& attended) const {
  const NormedSum stream = ln_2.add(x, dropout(attended));
  return stream.sum + dropout(c_proj(c_fc.forward_gelu(stream.y, gelu)));
}

Tensor GptBlock::forward(const Tensor& x) const { return add_branches(x, attn(ln_1(x), {.causal = true})); }

Tensor GptBlock::operator()(const Tensor& x, const TokenRows& rows) const {
  return with_hooks(x, [&] { return rows.documents ? add_branches(x, attn(ln_1(x), *rows.documents)) : forward(x); });
}

Tensor GptBlock::extend(const Tensor& x, KeysAndValues& past, const Tensor& mask) const {
  return with_hooks(x, [&] { return add_branches(x, attn.extend(ln_1(x), past, mask)); });
}

void GptBlock::fields(Visitor& v) {
  v("ln_1", ln_1);
  v("attn", attn);
  v("ln_2", ln_2);
  v("mlp.c_fc", c_fc);
  v("mlp.c_proj", c_proj);
  v("dropout", dropout);
}

Gpt::Gpt(const GptOptions& given)
    : options(given),
      wte(std::make_shared<Embedding>(options.vocabulary, options.width, EmbeddingOptions{.std = 0.02})),
      wpe(options.positions, options.width, {.std = 0.02}),
      dropout(options.dropout),
      ln_f(options.width, options.eps) {
  for (int64_t i = 0; i < options.depth; ++i) h.push_back(std::make_shared<GptBlock>(options));
}

Tensor Gpt::embed(const Tensor& ids, int64_t before, const Tensor& places) const {
  WEFT_CHECK(ids.dim() == 2, "Gpt: expected ids [N, tokens], got ", ids);
  WEFT_CHECK(before + ids.size(1) <= options.positions, "Gpt: expected at most ", options.positions, " tokens, got ",
             before + ids.size(1));
  const auto first = static_cast<double>(before);
  return dropout((*wte)(ids) +
                 wpe(places.defined() ? places : Tensor::arange(ids.size(1), DType::i64, ids.device(), first)));
}

Tensor Gpt::loss(const Tensor& ids, const Tensor& targets, const LinearCrossEntropyOptions& how) const {
  return with_hooks(ids, [&] { return wte->tied_loss(ln_f(run_blocks({0, layers()}, ids, ids)), targets, how); });
}

Tensor Gpt::run_blocks(LayerRange range, const Tensor& given, const Tensor& sample) const {
  const auto [ids, rows] = read_ids(sample);
  Tensor x = range.first == 0 ? embed(ids, 0, rows.documents ? rows.documents->positions() : Tensor()) : given;
  for (int64_t i = range.first; i < range.last; ++i) {
    const auto compute = [block = h[static_cast<size_t>(i)], of = rows](const Tensor& in) { return (*block)(in, of); };
    x = options.recompute && grad_enabled()
            ? checkpoint([compute](const auto& inputs) { return compute(inputs[0]); }, {x})
            : compute(x);
  }
  return x;
}

Tensor Gpt::run(LayerRange range, const Tensor& given, const Tensor& sample) const {
  const Tensor x = run_blocks(range, given, sample);
  return range.last == layers() ? wte->tied_linear(ln_f(x)) : x;
}

bool Gpt::uses(LayerRange range, const std::string& parameter) const {
  if (const auto layer = layer_of(parameter, "h")) return range.has(*layer);
  const bool begins = range.first == 0, ends = range.last == layers();
  return (parameter.starts_with("wte.") && (begins || ends)) || (parameter.starts_with("wpe.") && begins) ||
         (parameter.starts_with("ln_f.") && ends);
}

Tensor Gpt::extend(const Tensor& ids, std::vector<KeysAndValues>& past, const std::vector<int64_t>& padding) const {
  past.resize(h.size());
  const int64_t before = past[0].keys.defined() ? past[0].keys.size(1) : 0, tokens = ids.size(1);
  const Tensor mask = mask_of(padding, ids.size(0), before + tokens, ids.device());
  Tensor places;
  if (!padding.empty()) {
    std::vector<int64_t> all;
    for (const int64_t count : padding)
      for (int64_t t = 0; t < tokens; ++t) all.push_back(std::max<int64_t>(before + t - count, 0));
    places = Tensor::from(all, {ids.size(0), tokens}, ids.device());
  }
  Tensor x = embed(ids, before, places);
  for (size_t i = 0; i < h.size(); ++i) x = whole_block(*h[i]).extend(x, past[i], mask);
  const Tensor logits = wte->tied_linear(ln_f(x));
  WEFT_CHECK(logits.size(-1) == options.vocabulary, "Gpt: expected a whole vocabulary for text that goes on, got ",
             wte->kind());
  return logits;
}

void Gpt::fields(Visitor& v) {
  v("wte", wte);
  v("wpe", wpe);
  v("dropout", dropout);
  v("h", h);
  v("ln_f", ln_f);
}

std::vector<std::string> gpt_names() {
  std::vector<std::string> names;
  for (const GptSize& size : kGptSizes) names.emplace_back(size.name);
  return names;
}

GptOptions gpt_options(const std::string& name) {
  for (const GptSize& size : kGptSizes)
    if (name == size.name)
      return {.positions = size.positions, .width = size.width, .depth = size.depth, .heads = size.heads};
  fail("gpt_options: no model is called '", name, "'.", suggestion(name, gpt_names()));
}

}  // namespace weft::nn
