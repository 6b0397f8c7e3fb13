// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/operand.h"

#include "emulator/cublaslt/number.h"

namespace emulator::lt {

Operand operand(const char* name, const void* at, bool written, size_t alignment, const Matrix& m, int64_t batches) {
  const auto size = static_cast<int64_t>(size_of(m.type));
  const bool by_rows = m.column == 1 && m.row != 1;
  const int64_t lines = by_rows ? m.rows : m.columns, step = by_rows ? m.row : m.column,
                length = by_rows ? m.columns : m.rows;
  return cuda::library_operand(name, at, written, alignment, length * size, step == 0 ? 1 : lines, step * size, batches,
                               m.batch * size);
}

}  // namespace emulator::lt
