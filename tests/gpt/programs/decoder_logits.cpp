// SPDX-License-Identifier: Apache-2.0
// decoder_logits FOLDER IDS.npy LOGITS.npy: the logits [N, L, vocabulary] of Hugging Face's folder of a decoder for
// tokens [N, L].
#include "core/autograd.h"
#include "io/npy.h"
#include "nn/models/decoder.h"
#include "train/decoder_config.h"
#include "train/load_weights.h"

int main(int, char** argv) {
  const weft::NoGrad none;
  weft::nn::Decoder model(weft::train::read_decoder_config(argv[1]));
  weft::train::load_weights(model, argv[1]);
  model.eval();
  weft::write_npy(argv[3], model(weft::read_npy(argv[2])));
}
