// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

/// DLPack's struct for a tensor that changes hands (dlpack.h up to version 0.8, and what Python's capsules named
/// "dltensor" hold); core/dlpack.cpp has its layout, so that nobody needs DLPack's header.
struct DLManagedTensor;

namespace weft {

// Tensors from and to other libraries in the same process (NumPy, PyTorch, CuPy, JAX, TVM) by DLPack
// (https://dmlc.github.io/dlpack): both sides see the same memory, nothing is copied. Changes in place by the other
// side are not noticed: change nothing that a backward still needs. On a GPU the side that receives must order its
// streams after the work that writes the tensor: wait for x's stream before it is handed on.

/// The tensor for another library, which must call the struct's deleter (a consumer of a capsule does); until then x's
/// memory stays. Devices cpu and cuda. Errors: an undefined tensor; a tensor that requires a gradient (detach() it).
DLManagedTensor* to_dlpack(const Tensor& x);

/// The tensor of another library, in its strides; takes the struct over, and calls its deleter when the last tensor
/// goes (or at once, where this throws). Errors: a dtype or device that Weft does not have, vectors as elements,
/// negative strides, more than eight dimensions.
Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace weft
