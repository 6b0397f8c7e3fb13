// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <functional>

#include "kernels/engines/problem.h"
#include "kernels/kernel.h"
#include "kernels/runtime/engine.h"

// Layers of LSTM and GRU by cuDNN. Its call takes the product with the input too, where our kernels
// (kernels/contracts/recurrent.h) compute the recurrence alone: so core/ops/layers/recurrent.cpp asks here first.

namespace weft::kernels::vendor {

enum class Pass : uint8_t { inference, training, backward };

/// One direction of a layer with G gates (an LSTM's 4, a GRU's 3), forward in time. All tensors but the reserve are
/// dense and of one floating dtype; those of the backward pass are its results but for dy and dlast_c.
struct RecurrentCall {
  const Queue& queue;
  Pass pass;
  View x, h, c;                 ///< [T, B, I]; before the first step [B, H]; c: of an LSTM
  std::array<View, 4> weights;  ///< weights of x [G H, I], of h [G H, H]; their biases [G H], both or none
  View y, last_c;               ///< [T, B, H]; [B, H]
  View reserve{};               ///< u8: the training pass's data for the backward pass, which changes them
  View dy{}, dlast_c{}, dx{}, dh{}, dc{};
  std::array<View, 4> dweights{};

  bool is_lstm() const { return static_cast<bool>(c); }
  const char* op() const { return is_lstm() ? "lstm" : "gru"; }
};

/// The key that distinguishes the calls: everything but addresses.
Problem problem_of(const RecurrentCall& call);

// For the device cuda; compiled without it, too.
bool chooses_cudnn(const RecurrentCall& call, const std::function<void()>& own);
/// Bytes of the reserve of a training pass. Errors: as recurrent().
int64_t recurrent_reserve(const RecurrentCall& call);
/// Enqueues a pass. Errors: the library's.
void recurrent(const RecurrentCall& call);

/// Whether cuDNN is to run this pass, inference or training: as WEFT_ENGINE says; under auto after the forward pass was
/// timed beside `own`, which does the same by our kernels. Errors: WEFT_ENGINE=vendor without cuDNN.
inline bool takes_recurrent(const RecurrentCall& call, const std::function<void()>& own) {
  return engine() != Engine::own && call.queue.device.kind == DeviceKind::cuda && chooses_cudnn(call, own);
}

}  // namespace weft::kernels::vendor
