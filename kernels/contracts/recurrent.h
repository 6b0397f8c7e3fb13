// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

// The elementwise part of one step of a recurrent layer, for a batch of B sequences with H units. All tensors are
// contiguous and of one floating dtype; sums and functions are computed in f32 (f64 for f64).

namespace weft::kernels {

/// LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000). gates [B, 4 H]: the pre-activations of the input, forget,
/// cell and output gates, in that order; overwritten by i, f, o (sigmoid) and g (tanh). c = f c_before + i g; h = o
/// tanh(c); h, c, c_before [B, H].
WEFT_KERNEL(lstm_cell_forward, const Queue& queue, const View& h, const View& c, const View& gates,
            const View& c_before);
/// The gradient of lstm_cell_forward: dgates [B, 4 H] of the pre-activations; dc [B, H] is c's gradient from later
/// steps and is overwritten by c_before's gradient. dh is dy, plus dh_later if given. gates: the forward's output.
WEFT_KERNEL(lstm_cell_backward, const Queue& queue, const View& dgates, const View& dc, const View& dy,
            const View& dh_later, const View& gates, const View& c, const View& c_before);

/// GRU (Cho et al. 2014, in the form of cuDNN and PyTorch). from_x, from_h [B, 3 H]: the linear layers of the input and
/// of h_before, with biases, for the reset gate, the update gate and the new value. r, z by sigmoid; n = tanh(x_n + r
/// h_n); h = (1 - z) n + z h_before. saved [B, 4 H]: r, z, n, h_n.
WEFT_KERNEL(gru_cell_forward, const Queue& queue, const View& h, const View& saved, const View& from_x,
            const View& from_h, const View& h_before);
/// The gradient of gru_cell_forward, without h_before's gradient through from_h: dfrom_x, dfrom_h [B, 3 H], dh_before
/// [B, H], which may be dh_later.
WEFT_KERNEL(gru_cell_backward, const Queue& queue, const View& dfrom_x, const View& dfrom_h, const View& dh_before,
            const View& dy, const View& dh_later, const View& saved, const View& h_before);

}  // namespace weft::kernels
