// SPDX-License-Identifier: Apache-2.0
// The tables. torchvision's ResNets need none: Weft's modules have their names. Vision transformers use the names of
// the original DINOv2; BERT and GPT use Hugging Face's, with query, key and value packed.
#include "io/weights/name_map.h"

#include <algorithm>

#include "core/text.h"

namespace weft {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool match(std::string_view pattern, std::string_view name, NameMatch& result) {
  if (pattern.empty()) return name.empty();
  const std::string_view rest = pattern.substr(1);
  if (pattern[0] == '*') {
    for (size_t length = 0; length <= name.size(); ++length) {
      NameMatch tried = result;
      tried.captures.emplace_back(name.substr(0, length));
      if (match(rest, name.substr(length), tried)) return result = tried, true;
    }
    return false;
  }
  if (pattern[0] == '#' || pattern[0] == '@') {
    const auto length = static_cast<size_t>(std::find_if_not(name.begin(), name.end(), is_digit) - name.begin());
    if (length == 0) return false;
    if (pattern[0] == '#') result.captures.emplace_back(name.substr(0, length));
    return match(rest, name.substr(length), result);
  }
  if (pattern[0] == '{') {
    const std::vector<std::string> words = words_of(pattern);
    for (size_t i = 0; i < words.size(); ++i) {
      NameMatch tried = result;
      tried.word = i;
      if (name.starts_with(words[i]) &&
          match(pattern.substr(pattern.find('}') + 1), name.substr(words[i].size()), tried))
        return result = tried, true;
    }
    return false;
  }
  return !name.empty() && name[0] == pattern[0] && match(rest, name.substr(1), result);
}

}  // namespace

std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name) {
  NameMatch result;
  if (!match(pattern, name, result)) return std::nullopt;
  return result;
}

std::string fill_name(std::string_view pattern, const NameMatch& match) {
  std::string name;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '#' || pattern[i] == '*') {
      name += match.captures.at(next++);
    } else if (pattern[i] == '{') {
      name += words_of(pattern.substr(i)).at(match.word);
      i = pattern.find('}', i);
    } else {
      name += pattern[i];
    }
  }
  return name;
}

std::vector<std::string> words_of(std::string_view pattern) {
  std::vector<std::string> words;
  const size_t open = pattern.find('{'), close = pattern.find('}');
  if (open == std::string_view::npos) return words;
  for (size_t begin = open + 1; begin <= close;) {
    const size_t end = std::min(pattern.find(',', begin), close);
    words.emplace_back(pattern.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

namespace {

/// facebookresearch/dinov2: its training checkpoints group blocks in chunks, blocks.CHUNK.BLOCK; its published weights
/// have the names as they are.
NameMap dinov2() { return {"dinov2", {{"blocks.@.#.*", "blocks.#.*", false}}, {}, "*blocks.#.#.*"}; }

/// huggingface/transformers, models/dinov2 and dinov2_with_registers (convert_dinov2_to_hf.py).
NameMap hf_dinov2() {
  return {"hf_dinov2",
          {
              {"embeddings.cls_token", "cls_token"},
              {"embeddings.mask_token", "mask_token"},
              {"embeddings.register_tokens", "register_tokens"},
              {"embeddings.position_embeddings", "pos_embed"},
              {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
              {"encoder.layer.#.norm1.*", "blocks.#.norm1.*"},
              {"encoder.layer.#.attention.attention.{query,key,value}.*", "blocks.#.attn.qkv.*"},
              {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
              {"encoder.layer.#.layer_scale1.lambda1", "blocks.#.ls1.gamma"},
              {"encoder.layer.#.norm2.*", "blocks.#.norm2.*"},
              {"encoder.layer.#.mlp.fc1.*", "blocks.#.mlp.fc1.*"},
              {"encoder.layer.#.mlp.fc2.*", "blocks.#.mlp.fc2.*"},
              {"encoder.layer.#.mlp.weights_in.*", "blocks.#.mlp.w12.*"},
              {"encoder.layer.#.mlp.weights_out.*", "blocks.#.mlp.w3.*"},
              {"encoder.layer.#.layer_scale2.lambda1", "blocks.#.ls2.gamma"},
              {"layernorm.*", "norm.*"},
          },
          {"dinov2.", "dinov2_with_registers."},
          "*encoder.layer.#.attention.attention.query.*"};
}

/// huggingface/transformers, models/bert; gamma and beta occur in files that were converted from TensorFlow.
NameMap hf_bert() {
  return {"hf_bert",
          {
              {"*embeddings.position_ids", "", false},
              {"*embeddings.token_type_ids", "", false},
              {"*LayerNorm.gamma", "*LayerNorm.weight", false},
              {"*LayerNorm.beta", "*LayerNorm.bias", false},
              {"*encoder.layer.#.attention.self.{query,key,value}.*", "*encoder.layer.#.attention.self.qkv.*"},
              {"*encoder.layer.#.attention.output.dense.*", "*encoder.layer.#.attention.self.proj.*"},
          },
          {},
          "*encoder.layer.#.attention.self.query.*"};
}

/// huggingface/transformers, models/roberta: BERT's encoder under another prefix, and a head of two layers. The pooler
/// of a published encoder is not its classifier's.
NameMap hf_roberta() {
  return {
      "hf_roberta",
      {
          {"roberta.embeddings.position_ids", "", false},
          {"roberta.embeddings.token_type_ids", "", false},
          {"roberta.*LayerNorm.gamma", "bert.*LayerNorm.weight", false},
          {"roberta.*LayerNorm.beta", "bert.*LayerNorm.bias", false},
          {"roberta.pooler.*", "", false},
          {"classifier.dense.*", "bert.pooler.dense.*"},
          {"classifier.out_proj.*", "classifier.*"},
          {"roberta.encoder.layer.#.attention.self.{query,key,value}.*", "bert.encoder.layer.#.attention.self.qkv.*"},
          {"roberta.encoder.layer.#.attention.output.dense.*", "bert.encoder.layer.#.attention.self.proj.*"},
          {"roberta.*", "bert.*"},
      },
      {},
      "roberta.encoder.layer.#.attention.self.query.*"};
}

/// huggingface/transformers, models/distilbert.
NameMap hf_distilbert() {
  return {"hf_distilbert",
          {
              {"distilbert.embeddings.position_ids", "", false},
              {"distilbert.transformer.layer.#.attention.{q_lin,k_lin,v_lin}.*",
               "bert.encoder.layer.#.attention.self.qkv.*"},
              {"distilbert.transformer.layer.#.attention.out_lin.*", "bert.encoder.layer.#.attention.self.proj.*"},
              {"distilbert.transformer.layer.#.sa_layer_norm.*", "bert.encoder.layer.#.attention.output.LayerNorm.*"},
              {"distilbert.transformer.layer.#.ffn.lin1.*", "bert.encoder.layer.#.intermediate.dense.*"},
              {"distilbert.transformer.layer.#.ffn.lin2.*", "bert.encoder.layer.#.output.dense.*"},
              {"distilbert.transformer.layer.#.output_layer_norm.*", "bert.encoder.layer.#.output.LayerNorm.*"},
              {"pre_classifier.*", "bert.pooler.dense.*"},
              {"distilbert.*", "bert.*"},
          },
          {},
          "distilbert.transformer.layer.#.attention.q_lin.*"};
}

/// huggingface/transformers, models/gpt2, whose Conv1D holds a matrix as [in, out]. Published files lack the prefix.
/// The output layer is the token embedding; masks are constants.
NameMap hf_gpt2() {
  constexpr bool kBothWays = true, kTurned = true;
  return {"hf_gpt2",
          {
              {"h.#.attn.bias", "", false},
              {"h.#.attn.masked_bias", "", false},
              {"lm_head.weight", "", false},
              {"h.#.attn.c_attn.weight", "h.#.attn.qkv.weight", kBothWays, kTurned},
              {"h.#.attn.c_attn.bias", "h.#.attn.qkv.bias"},
              {"h.#.attn.c_proj.weight", "h.#.attn.proj.weight", kBothWays, kTurned},
              {"h.#.attn.c_proj.bias", "h.#.attn.proj.bias"},
              {"h.#.mlp.c_fc.weight", "h.#.mlp.c_fc.weight", kBothWays, kTurned},
              {"h.#.mlp.c_proj.weight", "h.#.mlp.c_proj.weight", kBothWays, kTurned},
          },
          {"transformer."},
          "*h.#.attn.c_attn.weight"};
}

/// karpathy/nanoGPT: GPT-2's names, and matrices that lie as ours. torch.compile puts a word before them.
NameMap nanogpt() {
  return {"nanogpt",
          {
              {"h.#.attn.bias", "", false},
              {"lm_head.weight", "", false},
              {"h.#.attn.c_attn.*", "h.#.attn.qkv.*"},
              {"h.#.attn.c_proj.*", "h.#.attn.proj.*"},
          },
          {"_orig_mod.transformer.", "transformer.", "_orig_mod."},
          nullptr};
}

/// The map's rows from right to left.
NameMap inverse(const NameMap& map, const char* name) {
  NameMap result{name, {}, {}, nullptr};
  for (const NameRule& rule : map.rules)
    if (rule.both_ways) result.rules.push_back({rule.to, rule.from, true, rule.turned});
  return result;
}

std::vector<NameMap> all_maps() {
  return {dinov2(),
          hf_dinov2(),
          inverse(hf_dinov2(), "to_hf_dinov2"),
          hf_roberta(),
          inverse(hf_roberta(), "to_hf_roberta"),
          hf_distilbert(),
          inverse(hf_distilbert(), "to_hf_distilbert"),
          hf_bert(),
          inverse(hf_bert(), "to_hf_bert"),
          nanogpt(),
          hf_gpt2(),
          inverse(hf_gpt2(), "to_hf_gpt2")};
}

/// The shape of the matrix that makes queries, keys and values: three times as many rows as columns.
bool lies_as_linear(const Shape& sizes) { return sizes.rank() == 2 && sizes[0] == 3 * sizes[1]; }

}  // namespace

std::vector<std::string> name_map_names() {
  std::vector<std::string> names;
  for (const NameMap& map : all_maps()) names.emplace_back(map.name);
  return names;
}

std::string guess_name_map(const std::vector<WeightInfo>& tensors) {
  for (const NameMap& map : all_maps())
    if (map.sign != nullptr)
      for (const WeightInfo& info : tensors)
        if (info.name.size() <= kLongestMappedName && match_name(map.sign, info.name))
          return std::string_view(map.name) == "hf_gpt2" && lies_as_linear(info.sizes) ? "nanogpt" : map.name;
  return "";
}

NameMap find_name_map(const std::string& name) {
  for (NameMap& map : all_maps())
    if (map.name == name) return std::move(map);
  fail("name map: there is no '", printable(name), "'.", suggestion(name, name_map_names()));
}

}  // namespace weft
