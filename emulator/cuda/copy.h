// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include "emulator/cuda/work.h"

namespace emulator::cuda {

/// Rows of elements, as a cudaArray_t holds them.
struct Array {
  cudaChannelFormatDesc format{};
  cudaExtent extent{};  ///< as asked for: 0 for dimensions that are not there
  unsigned flags = 0;
  char* data = nullptr;
  size_t element = 0, pitch = 0, slice = 0;
  int device = 0;
};
Array& array_of(cudaArray_const_t handle);
cudaArray_t array_create(const cudaChannelFormatDesc& format, const cudaExtent& extent, unsigned flags);
void array_destroy(cudaArray_t array);

/// From any of the calls' forms. Errors: Error (directions, pitches, bounds of known memory).
CopyWork copy_bytes(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
CopyWork copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind);
CopyWork copy_box(const cudaMemcpy3DParms& p);
/// A copy's parameters, as a node reports them.
cudaMemcpy3DParms said_of(const CopyWork& copy, cudaMemcpyKind kind);

/// The kind of memory that a pointer addresses.
enum class Home { pageable, pinned, device };
Home home_of(const void* pointer);

/// Issues a copy. `blocking`: as the calls without a stream behave.
void submit_copy(CopyWork copy, cudaStream_t stream, bool blocking);
void submit_fill(FillWork fill, cudaStream_t stream, bool blocking);
FillWork fill_bytes(void* to, unsigned value, unsigned element, size_t count);
FillWork fill_box(void* to, size_t pitch, size_t rows_of_slice, unsigned value, unsigned element, size_t width,
                  size_t height, size_t depth);

}  // namespace emulator::cuda
