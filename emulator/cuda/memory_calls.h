// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <cstddef>
#include <memory>

#include "emulator/cuda/pool.h"

namespace emulator::cuda {

// Errors: Error.
void* device_allocate(size_t bytes);
void* managed_allocate(size_t bytes, unsigned flags);
void* host_allocate(size_t bytes, unsigned flags);
void device_free(void* memory);
void host_free(void* memory);
void host_register(void* memory, size_t bytes, unsigned flags);
void host_unregister(void* memory);
unsigned host_flags(void* memory);
void* host_device_pointer(void* memory);

void* stream_allocate(size_t bytes, Pool* pool, cudaStream_t stream);
void stream_free(void* memory, cudaStream_t stream);
Pool* pool_of(cudaMemPool_t handle);
Pool* pool_create(int device);
void pool_destroy(Pool* pool);
/// Releases what is kept beyond `bytes`.
void pool_trim(Pool& pool, size_t bytes);
void pool_set(Pool& pool, int attribute, void* value);
void pool_get(Pool& pool, int attribute, void* value);

cudaPointerAttributes pointer_attributes(const void* pointer);
/// cudaDeviceReset: frees all that a device holds.
void device_reset(int device);
/// The owner of an allocation node's memory. Frees outside of the graph leave the memory to the graph's next launch.
std::shared_ptr<void> graph_memory(void* memory);

}  // namespace emulator::cuda
