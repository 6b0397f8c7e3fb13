// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

namespace emulator::source {

/// Requests of warps to one kind of memory. A request is one instruction of one warp, however many of its lanes take
/// part.
struct GlobalCounts {
  int64_t requests = 0;
  int64_t sectors = 0;  ///< aligned 32-byte pieces that the requests touch, each once per request
  int64_t bytes = 0;    ///< that the lanes wanted: 32 sectors at most, when all fetched bytes are used
};
struct SharedCounts {
  int64_t requests = 0;
  int64_t wavefronts = 0;  ///< passes over the 32 banks, 4 bytes from each; one takes a clock
  int64_t conflicts = 0;   ///< of them, those because lanes wanted different words of one bank
};

/// Counts of kernels' work. These are facts of the program, not of a chip: caches, timing and nvcc's code are
/// not included.
struct Counts {
  int64_t blocks = 0;
  int64_t barriers = 0;  ///< __syncthreads, once for each block that passes it
  GlobalCounts loads, stores;
  SharedCounts shared;  ///< loads, stores, ldmatrix, and what cp.async writes
};

/// True in builds that can count: the plain one, without sanitizers.
bool can_count();

/// Runs `work` on this thread and counts the work of the kernels that it launches on simt. Plain loads and stores are seen
/// in code that was compiled with -fsanitize=thread (kernels/ladder) and nowhere else; emulated instructions (cp.async,
/// ldmatrix) and barriers everywhere.
///
/// A request joins the accesses of a warp's lanes at the same instruction, for the n-th time since
/// the last barrier. A request for 4 bytes a lane passes the banks as one; one for 8 bytes by halves and one for 16 by
/// quarters of a warp, except that two neighbouring parts whose words lie in different banks pass together.
/// Errors: a build that cannot count.
Counts count(const std::function<void()>& work);

}  // namespace emulator::source
