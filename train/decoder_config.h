// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "nn/models/decoder.h"

namespace weft::train {

/// Whether nn::Decoder is the model of this `model_type` of Hugging Face's config.json: llama, mistral, qwen2, qwen3.
bool is_decoder(const std::string& model_type);

/// The sizes that FOLDER/config.json states; load_weights() then reads the folder's weights. Errors: another kind of
/// model; a setting that nn::Decoder does not have, by its entry.
nn::DecoderOptions read_decoder_config(const std::filesystem::path& folder);

/// A config.json of these sizes: the first of qwen3 (`qk_norm`), qwen2 (`qkv_bias`), mistral (`window`) and llama that
/// has them. Errors: sizes that none of them has.
std::string decoder_config(const nn::DecoderOptions& options);

}  // namespace weft::train
