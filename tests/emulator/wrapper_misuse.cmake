# SPDX-License-Identifier: Apache-2.0
# One misuse of Hopper's instructions each (wrapper_misuse.cu), and what is said of it; included by CMakeLists.txt.
emulated_program(wrapper_misuse wrapper_misuse.cu ${PROJECT_SOURCE_DIR}/kernels/cuda/ptx/tensor_map.cu)
set_target_properties(emulated_wrapper_misuse PROPERTIES CUDA_ARCHITECTURES 90a-virtual)
target_include_directories(emulated_wrapper_misuse PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(emulated_wrapper_misuse PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)

emulated_test(wrapper_misuse.right OPTIONS --check races,uninitialised COMMAND $<TARGET_FILE:emulated_wrapper_misuse> right)
function(wrapper_misuse name expect)
  emulated_test(wrapper_misuse.${name} COMMAND $<TARGET_FILE:emulated_wrapper_misuse> ${name} EXPECT "wrapper_misuse.cu:[0-9]+[^\n]*: ${expect}")
endfunction()
wrapper_misuse(offset_too_large "cp.async.bulk.tensor: offset 256, of 8 bits in a map of 4 dimensions")
wrapper_misuse(wrong_base_offset "wgmma: operand a begins at shared address [0-9]+, not in the first line of the pattern of a 128-byte swizzle")
wrapper_misuse(registers_without_fence "[^\n]*between what writes registers and the wgmma that reads them")
wrapper_misuse(ends_before_it_is_read "illegal read of shared memory of rank 1, whose block has ended")
