// SPDX-License-Identifier: Apache-2.0
#include "nn/transformer.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/unary.h"

namespace weft::nn {

Mlp::Mlp(Integer width, Integer hidden)
    : fc1(width, hidden, {.init = Init::transformer}), fc2(hidden, width, {.init = Init::transformer}) {}

Tensor Mlp::forward(const Tensor& x) const { return fc2(fc1.forward_gelu(x)); }

void Mlp::fields(Visitor& v) {
  v("fc1", fc1);
  v("fc2", fc2);
}

SwiGlu::SwiGlu(Integer width, Integer hidden)
    : w12(width, 2 * hidden, {.init = Init::transformer}), w3(hidden, width, {.init = Init::transformer}) {}

Tensor SwiGlu::forward(const Tensor& x) const {
  const Tensor both = w12(x);
  const int64_t hidden = both.size(-1) / 2;
  const Tensor a = both.slice(-1, 0, hidden), b = both.slice(-1, hidden, hidden);
  return w3(a * sigmoid(a) * b);
}

void SwiGlu::fields(Visitor& v) {
  v("w12", w12);
  v("w3", w3);
}

Documents::Documents(const Tensor& starts) {
  WEFT_CHECK(starts.defined() && starts.dim() == 2 && starts.dtype() == DType::i64,
             "Documents: expected starts i64 [N, tokens], got ", starts);
  const int64_t N = starts.size(0), T = starts.size(1);
  const std::vector<int64_t> all = starts.to(Device{}).contiguous().to_vector<int64_t>();
  struct Document {
    int64_t first, length;
  };
  std::vector<Document> documents;
  std::vector<int64_t> positions, places(all.size());
  for (int64_t i = 0; i < N * T; ++i) {
    const int64_t place = i % T, start = all[static_cast<size_t>(i)];
    const bool begins = start == place;
    WEFT_CHECK(begins || (place > 0 && start == all[static_cast<size_t>(i - 1)]), "Documents: expected the start ",
               place, place > 0 ? str(" or ", all[static_cast<size_t>(i - 1)]) : "", " of token ", place, " in row ",
               i / T, ", got ", start);
    if (begins)
      documents.push_back({i, 1});
    else
      ++documents.back().length;
    positions.push_back(place - start);
  }
  std::stable_sort(documents.begin(), documents.end(),
                   [](const Document& a, const Document& b) { return a.length > b.length; });
  for (size_t begin = 0, before = 0; begin < documents.size();) {
    // A group's shortest document has more than half of the longest one's tokens.
    const int64_t length = documents[begin].length;
    size_t end = begin;
    std::vector<int64_t> tokens;
    for (; end < documents.size() && (2 * documents[end].length > length || length <= 16); ++end)
      for (int64_t t = 0; t < length; ++t) {
        const auto [first, own] = documents[end];
        if (t < own) places[static_cast<size_t>(first + t)] = static_cast<int64_t>(before + tokens.size());
        tokens.push_back(first + std::min(t, own - 1));
      }
    groups_.push_back({static_cast<int64_t>(end - begin), length, Tensor::from(tokens).to(starts.device())});
    before += tokens.size();
    begin = end;
  }
  positions_ = Tensor::from(positions, {N, T}).to(starts.device());
  places_ = Tensor::from(places).to(starts.device());
}

Tensor Documents::apart(const std::vector<Tensor>& inputs,
                        const std::function<Tensor(const std::vector<Tensor>& documents)>& f) const {
  const int64_t N = positions_.size(0), T = positions_.size(1);
  const auto sizes_of = [](const Tensor& x, Shape begin, int skip) {
    for (int d = skip; d < x.dim(); ++d) begin.push_back(x.size(d));
    return begin;
  };
  std::vector<Tensor> flat, results;
  for (const Tensor& x : inputs) flat.push_back(x.reshape(sizes_of(x, {N * T}, 2)));
  for (const Group& group : groups_) {
    std::vector<Tensor> documents;
    for (const Tensor& x : flat)
      documents.push_back(index_select(x, 0, group.tokens).reshape(sizes_of(x, {group.count, group.length}, 1)));
    const Tensor y = f(documents);
    results.push_back(y.reshape(sizes_of(y, {group.count * group.length}, 2)));
  }
  const Tensor y = index_select(results.size() == 1 ? results[0] : concat(results, 0), 0, places_);
  return y.reshape(sizes_of(y, {N, T}, 1));
}

/// Tensors [N, capacity, heads, size] whose first `used` tokens are written.
struct KeysAndValues::Room {
  Tensor keys, values;
  int64_t used;
};

void KeysAndValues::append(const Tensor& k, const Tensor& v) {
  if (wants_gradient(k) || wants_gradient(v) || (keys.defined() && (wants_gradient(keys) || wants_gradient(values)))) {
    keys = keys.defined() ? concat({keys, k}, 1) : k;
    values = values.defined() ? concat({values, v}, 1) : v;
    return;
  }
  const int64_t before = keys.defined() ? keys.size(1) : 0, all = before + k.size(1);
  if (before == 0 && capacity <= all) {  // perhaps nothing follows
    keys = k, values = v;
    return;
  }
  const NoGrad no_grad;
  const auto is_like = [](const Tensor& a, const Tensor& b) {
    return a.size(0) == b.size(0) && a.size(2) == b.size(2) && a.size(3) == b.size(3);
  };
  WEFT_CHECK(before == 0 || (is_like(k, keys) && is_like(v, values)), "KeysAndValues: expected tokens like ", keys,
             ", got ", k);
  // `used` differs where a copy of this object has written its own next token; sizes differ where rows were left out.
  const bool fits = room && room->used == before && all <= room->keys.size(1) && room->keys.dtype() == k.dtype() &&
                    is_like(keys, room->keys) && is_like(values, room->values) &&
                    keys.raw_data() == room->keys.raw_data() && values.raw_data() == room->values.raw_data();
  if (!fits) {
    constexpr int64_t kLeast = 64;
    const int64_t tokens = capacity >= all ? capacity : all + std::max(all / 2, kLeast);
    const auto with_room = [&](const Tensor& earlier, const Tensor& like) {
      const Tensor x = Tensor::empty({like.size(0), tokens, like.size(2), like.size(3)}, like.dtype(), like.device());
      if (before > 0) x.slice(1, 0, before).copy_(earlier);
      return x;
    };
    room = std::make_shared<Room>(Room{with_room(keys, k), with_room(values, v), before});
  }
  room->keys.slice(1, before, k.size(1)).copy_(k);
  room->values.slice(1, before, v.size(1)).copy_(v);
  room->used = all;
  keys = room->keys.slice(1, 0, all), values = room->values.slice(1, 0, all);
}

Tensor KeysAndValues::attend(const Tensor& q, AttentionOptions options, int64_t window) const {
  WEFT_CHECK(!options.bias.defined() && !options.key_lengths.defined() && !options.window,
             "KeysAndValues: expected options without a bias, key lengths and a window of their own");
  const int64_t all = keys.size(1), tokens = q.size(1), before = all - tokens;
  if (before == 0) {
    options.causal = true;
    if (window > 0) options.window = window;
    return attention(q, keys, values, options);
  }
  const int64_t known = window > 0 ? std::min(all, std::min(window, all) + tokens - 1) : all, first = all - known;
  const auto seen = [&](const Tensor& x) { return first > 0 ? x.slice(1, first, known) : x; };
  if (options.key_mask.defined()) options.key_mask = seen(options.key_mask);
  if (tokens > 1) {
    const Tensor places = Tensor::arange(known, DType::i64, q.device());
    const Tensor own = places.slice(0, before - first, tokens).unsqueeze(1);
    options.bias = places <= own;
    if (window > 0) options.bias = options.bias & (places > own - window);
  }
  return attention(q, seen(keys), seen(values), options);
}

MultiHeadAttention::MultiHeadAttention(Integer width, Integer head_count, MultiHeadAttentionOptions options)
    : heads(head_count),
      dropout(options.dropout),
      qkv(width, 3 * width, {.bias = options.bias, .init = Init::transformer}),
      proj(width, width, {.bias = options.bias, .init = Init::transformer}) {
  WEFT_CHECK(heads > 0 && width % heads == 0,
             "MultiHeadAttention: expected a width that is a multiple of the heads, got ", width, " and ", heads);
}

namespace {

/// N, tokens and width of x.
std::array<int64_t, 3> sizes_of_tokens(const Tensor& x) {
  WEFT_CHECK(x.defined() && x.dim() == 3, "MultiHeadAttention: expected tokens [N, tokens, width], got ", x);
  return x.dims<3>();
}

}  // namespace

Tensor MultiHeadAttention::forward(const Tensor& x, const AttentionOptions& options) const {
  const auto [N, tokens, width] = sizes_of_tokens(x);
  AttentionOptions with_dropout = options;
  with_dropout.dropout = is_training() ? dropout : 0;
  const Tensor y = attention_packed(qkv(x).reshape({N, tokens, 3, heads, width / heads}), with_dropout);
  return proj(y.reshape({N, tokens, width}));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Documents& documents) const {
  return with_hooks(x, [&] {
    const auto [N, tokens, width] = sizes_of_tokens(x);
    const AttentionOptions options{.causal = true, .dropout = is_training() ? dropout : 0};
    const Tensor y = documents.apart({qkv(x)}, [&, channels = width](const std::vector<Tensor>& packed) {
      const Shape sizes{packed[0].size(0), packed[0].size(1), 3, heads, channels / heads};
      return attention_packed(packed[0].reshape(sizes), options);
    });
    return proj(y.reshape({N, tokens, width}));
  });
}

Tensor MultiHeadAttention::extend(const Tensor& x, KeysAndValues& past, const Tensor& mask) const {
  return with_hooks(x, [&] {
    const auto [N, tokens, width] = sizes_of_tokens(x);
    const Tensor packed = qkv(x).reshape({N, tokens, 3, heads, width / heads});
    past.append(packed.select(2, 1), packed.select(2, 2));
    return proj(past.attend(packed.select(2, 0), {.key_mask = mask}).reshape({N, tokens, width}));
  });
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionOptions& options) const {
  return with_hooks(x, [&] { return forward(x, options); });
}

void MultiHeadAttention::fields(Visitor& v) {
  v("qkv", qkv);
  v("proj", proj);
}

int64_t MultiHeadAttention::flops(const Shape& x, const Shape&) const { return 4 * x.numel() * x[1]; }

CrossAttention::CrossAttention(Integer width, Integer head_count, CrossAttentionOptions options)
    : heads(head_count),
      dropout(options.dropout),
      q(width, width, {.bias = options.bias, .init = Init::transformer}),
      kv(options.context == 0 ? int64_t{width} : options.context, 2 * width,
         {.bias = options.bias, .init = Init::transformer}),
      proj(width, width, {.bias = options.bias, .init = Init::transformer}) {
  WEFT_CHECK(heads > 0 && width % heads == 0, "CrossAttention: expected a width that is a multiple of the heads, got ",
             width, " and ", heads);
}

Tensor CrossAttention::attend(const Tensor& x, const Tensor& context, const AttentionOptions& options) const {
  WEFT_CHECK(x.defined() && context.defined() && x.dim() == 3 && context.dim() == 3 && x.size(0) == context.size(0),
             "CrossAttention: expected tokens [N, tokens, width] and others [N, others, context], got ", x, " and ",
             context);
  const auto [N, tokens, width] = x.dims<3>();
  AttentionOptions with_dropout = options;
  with_dropout.dropout = is_training() ? dropout : 0;
  const Tensor both = kv(context).reshape({N, context.size(1), 2, heads, width / heads});
  const Tensor y =
      attention(q(x).reshape({N, tokens, heads, width / heads}), both.select(2, 0), both.select(2, 1), with_dropout);
  return proj(y.reshape({N, tokens, width}));
}

Tensor CrossAttention::operator()(const Tensor& x, const Tensor& context, const AttentionOptions& options) const {
  return with_hooks(x, [&] { return attend(x, context, options); });
}

void CrossAttention::fields(Visitor& v) {
  v("q", q);
  v("kv", kv);
  v("proj", proj);
}

int64_t CrossAttention::flops(const Shape& x, const Shape&) const { return 4 * x.numel() * x[1]; }

namespace {

std::shared_ptr<Module> make_feed_forward(const TransformerBlockOptions& options) {
  if (options.feed_forward == FeedForward::swiglu) return std::make_shared<SwiGlu>(options.width, options.hidden);
  return std::make_shared<Mlp>(options.width, options.hidden);
}

std::shared_ptr<LayerScale> make_scale(const TransformerBlockOptions& options) {
  return options.layer_scale == 0 ? nullptr : std::make_shared<LayerScale>(options.width, options.layer_scale);
}

/// The last product of a feed-forward; nullptr: of another kind.
const Linear* last_of(const Module& feed_forward) {
  if (const auto* const mlp = dynamic_cast<const Mlp*>(&feed_forward)) return &mlp->fc2;
  const auto* const gated = dynamic_cast<const SwiGlu*>(&feed_forward);
  return gated ? &gated->w3 : nullptr;
}

/// scale(branch(x)). If the factors fit into the branch's last product, and nobody watches the unscaled results, there
/// is no pass over the results.
Tensor scaled(const Module& branch, const Linear* last, const std::shared_ptr<LayerScale>& scale, const Tensor& x) {
  if (!scale) return branch(x);
  const bool watched = branch.watches_tensors() || scale->watches_tensors() || (last && last->watches_tensors());
  if (!last || watched || !last->takes_factors(x, scale->gamma)) return (*scale)(branch(x));
  return scale->with_hooks({}, [&] {
    const ScaledLinear one(*last, scale->gamma);
    return branch(x);
  });
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerBlockOptions& options)
    : norm1(options.width, options.eps),
      attn(options.width, options.heads),
      ls1(make_scale(options)),
      drop_path1(options.drop_path),
      norm2(options.width, options.eps),
      mlp(make_feed_forward(options)),
      ls2(make_scale(options)),
      drop_path2(options.drop_path) {
  norm1.feeds_product = norm2.feeds_product = true;
}

Tensor TransformerBlock::forward(const Tensor& x) const {
  const NormedSum stream = norm2.add(x, drop_path1(scaled(attn, &attn.proj, ls1, norm1(x))));
  return stream.sum + drop_path2(scaled(*mlp, last_of(*mlp), ls2, stream.y));
}

void TransformerBlock::fields(Visitor& v) {
  v("norm1", norm1);
  v("attn", attn);
  v("ls1", ls1);
  v("drop_path1", drop_path1);
  v("norm2", norm2);
  v("mlp", mlp);
  v("ls2", ls2);
  v("drop_path2", drop_path2);
}

}  // namespace weft::nn
