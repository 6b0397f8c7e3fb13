// SPDX-License-Identifier: Apache-2.0
#include "nn/models/decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "core/autograd.h"
#include "core/ops/layers/attention.h"
#include "core/ops/unary.h"
#include "core/text.h"

namespace weft::nn {
namespace {

constexpr LinearOptions kDecoderLinear{.bias = false, .init = Init::transformer};

AdaptedLinear projection(int64_t in, int64_t out, bool bias) {
  return AdaptedLinear(in, out, {.bias = bias, .init = Init::transformer});
}

}  // namespace

RotaryOptions RotaryPositions::of_heads(int64_t size) const {
  WEFT_CHECK(size % 2 == 0, "Decoder: expected heads of an even size, got ", size);
  WEFT_CHECK(factor > 0 && theta > 1,
             "Decoder: expected a positive factor and a theta above 1 of rotary positions, got ", factor, " and ",
             theta);
  const int64_t pairs = size / 2;
  RotaryOptions result;
  for (int64_t i = 0; i < pairs; ++i)
    result.frequencies.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(size)));
  const auto before = static_cast<double>(original);
  const auto turns = [&](double frequency) { return before * frequency / (2 * std::numbers::pi); };
  // The pair that turns so often within the original positions.
  const auto pair_of = [&](double times) {
    return static_cast<double>(size) * std::log(before / (times * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double begin = 0, end = 0;
  if (scaling == RotaryScaling::yarn) {
    begin = pair_of(fast), end = pair_of(slow);
    if (whole) begin = std::floor(begin), end = std::ceil(end);
    begin = std::max(begin, 0.0), end = std::min(end, static_cast<double>(size - 1));
    if (begin == end) end += 0.001;
    result.scale = attention_factor > 0 ? attention_factor : factor > 1 ? 0.1 * std::log(factor) + 1 : 1;
  }
  for (int64_t i = 0; i < pairs; ++i) {
    double& frequency = result.frequencies[static_cast<size_t>(i)];
    double kept = 1;  // the share of the pair's own frequency, beside its frequency / factor
    if (scaling == RotaryScaling::linear) kept = 0;
    if (scaling == RotaryScaling::llama3) kept = std::clamp((turns(frequency) - low) / (high - low), 0.0, 1.0);
    if (scaling == RotaryScaling::yarn)
      kept = 1 - std::clamp((static_cast<double>(i) - begin) / (end - begin), 0.0, 1.0);
    frequency *= kept + (1 - kept) / factor;
  }
  return result;
}

DecoderAttention::DecoderAttention(const DecoderOptions& o, int64_t layer)
    : heads(o.heads),
      groups(o.kv_heads()),
      window(layer >= o.window_from ? o.window : 0),
      rotary(o.rotary.of_heads(o.size_of_head())),
      dropout(o.dropout),
      q_proj(projection(o.width, heads * o.size_of_head(), o.qkv_bias)),
      k_proj(projection(o.width, groups * o.size_of_head(), o.qkv_bias)),
      v_proj(projection(o.width, groups * o.size_of_head(), o.qkv_bias)),
      o_proj(projection(heads * o.size_of_head(), o.width, false)) {
  if (!o.qk_norm) return;
  q_norm = std::make_shared<RMSNorm>(o.size_of_head(), o.eps);
  k_norm = std::make_shared<RMSNorm>(o.size_of_head(), o.eps);
}

DecoderAttention::Projected DecoderAttention::project(const Tensor& x) const {
  const auto [N, tokens, width] = x.dims<3>();
  const auto by_head = [&, N = N, tokens = tokens](const Linear& projection, const std::shared_ptr<RMSNorm>& norm,
                                                   int64_t count) {
    const Tensor y = projection(x).reshape({N, tokens, count, -1});
    return norm ? (*norm)(y) : y;
  };
  return {by_head(q_proj, q_norm, heads), by_head(k_proj, k_norm, groups), by_head(v_proj, nullptr, groups)};
}

Tensor DecoderAttention::attend(const Tensor& x, KeysAndValues& past, const Tensor& mask) const {
  WEFT_CHECK(x.defined() && x.dim() == 3, "DecoderAttention: expected tokens [N, tokens, width], got ", x);
  const auto [N, tokens, width] = x.dims<3>();
  // Padding moves a row's positions: products depend on their differences alone.
  RotaryOptions turned = rotary;
  turned.first = past.keys.defined() ? past.keys.size(1) : 0;
  const Projected all = project(x);
  const Tensor q = weft::rotary(all.q, turned);
  past.append(weft::rotary(all.k, turned), all.v);
  const Tensor y = past.attend(q, {.key_mask = mask, .dropout = is_training() ? dropout : 0}, window);
  return o_proj(y.reshape({N, tokens, heads * q.size(3)}));
}

Tensor DecoderAttention::forward(const Tensor& x) const {
  KeysAndValues own;
  return attend(x, own, {});
}

Tensor DecoderAttention::operator()(const Tensor& x, const Documents& documents) const {
  return with_hooks(x, [&] {
    AttentionOptions options{.causal = true, .dropout = is_training() ? dropout : 0};
    if (window > 0) options.window = window;
    const Projected all = project(x);
    const Tensor y = documents.apart({all.q, all.k, all.v}, [&](const std::vector<Tensor>& of) {
      return attention(weft::rotary(of[0], rotary), weft::rotary(of[1], rotary), of[2], options);
    });
    return o_proj(y.reshape({x.size(0), x.size(1), -1}));
  });
}

Tensor DecoderAttention::extend(const Tensor& x, KeysAndValues& past, const Tensor& mask) const {
  return with_hooks(x, [&] { return attend(x, past, mask); });
}

void DecoderAttention::fields(Visitor& v) {
  v("q_proj", q_proj);
  v("k_proj", k_proj);
  v("v_proj", v_proj);
  v("o_proj", o_proj);
  v("q_norm", q_norm);
  v("k_norm", k_norm);
}

int64_t DecoderAttention::flops(const Shape& x, const Shape&) const {
  return 4 * x[0] * x[1] * (window > 0 ? std::min(window, x[1]) : x[1]) * q_proj.weight.size(0);
}

GatedMlp::GatedMlp(Integer width, Integer hidden)
    : gate_proj(width, hidden, kDecoderLinear),
      up_proj(width, hidden, kDecoderLinear),
      down_proj(hidden, width, kDecoderLinear) {}

Tensor GatedMlp::forward(const Tensor& x) const { return down_proj(silu(gate_proj(x)) * up_proj(x)); }

void GatedMlp::fields(Visitor& v) {
  v("gate_proj", gate_proj);
  v("up_proj", up_proj);
  v("down_proj", down_proj);
}

DecoderBlock::DecoderBlock(const DecoderOptions& options, int64_t layer)
    : input_layernorm(options.width, options.eps),
      self_attn(options, layer),
      post_attention_layernorm(options.width, options.eps),
      mlp(options.width, options.size_of_hidden()),
      dropout(options.dropout) {}

Tensor DecoderBlock::add_branches(const Tensor& x, const Tensor& attended) const {
  const NormedSum stream = post_attention_layernorm.add(x, dropout(attended));
  return stream.sum + dropout(mlp(stream.y));
}

Tensor DecoderBlock::forward(const Tensor& x) const { return add_branches(x, self_attn(input_layernorm(x))); }

Tensor DecoderBlock::operator()(const Tensor& x, const TokenRows& rows) const {
  return with_hooks(
      x, [&] { return rows.documents ? add_branches(x, self_attn(input_layernorm(x), *rows.documents)) : forward(x); });
}

Tensor DecoderBlock::extend(const Tensor& x, KeysAndValues& past, const Tensor& mask) const {
  return with_hooks(x, [&] { return add_branches(x, self_attn.extend(input_layernorm(x), past, mask)); });
}

void DecoderBlock::fields(Visitor& v) {
  v("self_attn", self_attn);
  v("mlp", mlp);
  v("input_layernorm", input_layernorm);
  v("post_attention_layernorm", post_attention_layernorm);
  v("dropout", dropout);
}

Decoder::Decoder(const DecoderOptions& given)
    : options(given),
      embed_tokens(options.vocabulary, options.width, {.std = 0.02}),
      dropout(options.dropout),
      norm(options.width, options.eps) {
  for (const auto& [name, value, least] :
       std::initializer_list<std::tuple<const char*, int64_t, int64_t>>{{"a depth", options.depth, 1},
                                                                        {"positions", options.positions, 1},
                                                                        {"groups", options.groups, 0},
                                                                        {"a head size", options.head_size, 0},
                                                                        {"a hidden width", options.hidden, 0},
                                                                        {"a window", options.window, 0}})
    WEFT_CHECK(value >= least, "Decoder: expected ", name, " of at least ", least, ", got ", value);
  const int64_t groups = options.kv_heads();
  WEFT_CHECK(
      options.heads > 0 && options.heads % groups == 0 && (options.head_size > 0 || options.width % options.heads == 0),
      "Decoder: expected heads that divide the width and are a multiple of the groups, got a width of ", options.width,
      ", ", options.heads, " heads and ", groups, " groups");
  for (int64_t i = 0; i < options.depth; ++i) blocks.push_back(std::make_shared<DecoderBlock>(options, i));
  if (!options.tied) lm_head = std::make_shared<Linear>(options.width, options.vocabulary, kDecoderLinear);
}

Tensor Decoder::embed(const Tensor& ids, int64_t before) const {
  WEFT_CHECK(ids.dim() == 2, "Decoder: expected ids [N, tokens], got ", ids);
  WEFT_CHECK(ids.size(1) > 0, "Decoder: expected at least one token, got ", ids);
  WEFT_CHECK(before + ids.size(1) <= options.positions, "Decoder: expected at most ", options.positions,
             " tokens, got ", before + ids.size(1));
  return dropout(embed_tokens(ids));
}

Tensor Decoder::logits(const Tensor& x) const {
  return lm_head ? (*lm_head)(norm(x)) : embed_tokens.tied_linear(norm(x));
}

Tensor Decoder::run(LayerRange range, const Tensor& given, const Tensor& sample) const {
  const auto [ids, rows] = read_ids(sample);
  Tensor x = range.first == 0 ? embed(ids, 0) : given;
  for (int64_t i = range.first; i < range.last; ++i) {
    const auto compute = [block = blocks[static_cast<size_t>(i)], of = rows](const Tensor& in) {
      return (*block)(in, of);
    };
    x = options.recompute && grad_enabled()
            ? checkpoint([compute](const auto& inputs) { return compute(inputs[0]); }, {x})
            : compute(x);
  }
  return range.last == layers() ? logits(x) : x;
}

bool Decoder::uses(LayerRange range, const std::string& parameter) const {
  if (const auto layer = layer_of(parameter, "model.layers")) return range.has(*layer);
  const bool begins = range.first == 0, ends = range.last == layers();
  if (parameter.starts_with("model.embed_tokens.")) return begins || (ends && options.tied);
  return ends;  // the norm and the output layer
}

Tensor Decoder::extend(const Tensor& ids, std::vector<KeysAndValues>& past, const std::vector<int64_t>& padding) const {
  past.resize(blocks.size());
  const int64_t before = !past.empty() && past[0].keys.defined() ? past[0].keys.size(1) : 0;
  Tensor x = embed(ids, before);
  const Tensor mask = mask_of(padding, ids.size(0), before + ids.size(1), ids.device());
  for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i]->extend(x, past[i], mask);
  return logits(x);
}

void Decoder::fields(Visitor& v) {
  v("model.embed_tokens", embed_tokens);
  v("dropout", dropout);
  v("model.layers", blocks);
  v("model.norm", norm);
  v("lm_head", lm_head);
}

namespace {

struct DecoderSize {
  const char* name;
  DecoderOptions options;
};

const std::vector<DecoderSize>& sizes() {
  static const std::vector<DecoderSize> all = [] {
    constexpr RotaryPositions kLlama3{.theta = 500000, .scaling = RotaryScaling::llama3, .factor = 8};
    RotaryPositions llama32 = kLlama3;
    llama32.factor = 32;
    return std::vector<DecoderSize>{
        {"llama_tiny",
         {.positions = 64, .width = 128, .depth = 4, .heads = 4, .groups = 2, .hidden = 344, .eps = 1e-5}},
        {"llama_mini",
         {.positions = 256, .width = 384, .depth = 6, .heads = 6, .groups = 2, .hidden = 1024, .eps = 1e-5}},
        {"smollm_135m",
         {.vocabulary = 49152,
          .positions = 2048,
          .width = 576,
          .depth = 30,
          .heads = 9,
          .groups = 3,
          .hidden = 1536,
          .eps = 1e-5,
          .tied = true}},
        {"llama3.2_1b",
         {.vocabulary = 128256,
          .positions = 131072,
          .width = 2048,
          .depth = 16,
          .heads = 32,
          .groups = 8,
          .hidden = 8192,
          .rotary = llama32,
          .eps = 1e-5,
          .tied = true}},
        {"llama3.1_8b",
         {.vocabulary = 128256,
          .positions = 131072,
          .width = 4096,
          .depth = 32,
          .heads = 32,
          .groups = 8,
          .hidden = 14336,
          .rotary = kLlama3,
          .eps = 1e-5}},
        {"mistral_7b",
         {.vocabulary = 32000,
          .positions = 32768,
          .width = 4096,
          .depth = 32,
          .heads = 32,
          .groups = 8,
          .hidden = 14336,
          .eps = 1e-5,
          .window = 4096}},
        {"qwen2.5_0.5b",
         {.vocabulary = 151936,
          .positions = 32768,
          .width = 896,
          .depth = 24,
          .heads = 14,
          .groups = 2,
          .hidden = 4864,
          .rotary = {.theta = 1e6},
          .qkv_bias = true,
          .tied = true}},
        {"qwen3_0.6b",
         {.vocabulary = 151936,
          .positions = 40960,
          .width = 1024,
          .depth = 28,
          .heads = 16,
          .groups = 8,
          .head_size = 128,
          .hidden = 3072,
          .rotary = {.theta = 1e6},
          .qk_norm = true,
          .tied = true}},
    };
  }();
  return all;
}

}  // namespace

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const DecoderSize& size : sizes()) names.emplace_back(size.name);
  return names;
}

DecoderOptions decoder_options(const std::string& name) {
  for (const DecoderSize& size : sizes())
    if (name == size.name) return size.options;
  fail("decoder_options: no model is called '", name, "'.", suggestion(name, decoder_names()));
}

}  // namespace weft::nn
