# SPDX-License-Identifier: Apache-2.0
# What CUDA promises of threads, streams and captures (runtime.cu), in each order; included by CMakeLists.txt.
emulated_program(runtime runtime.cu)
emulated_test(runtime.checked OPTIONS --check all --threads 4 COMMAND $<TARGET_FILE:emulated_runtime>)
emulated_test(runtime.a100 OPTIONS --gpu a100 COMMAND $<TARGET_FILE:emulated_runtime>)
foreach(order lazy starve:0 starve:1 random)
  string(REPLACE : _ name ${order})
  emulated_test(runtime.${name} OPTIONS --streams ${order} COMMAND $<TARGET_FILE:emulated_runtime>)
endforeach()
set(fault "write_null\\(float\\*\\)[^\n]*runtime.cu:[0-9]+: illegal write of 4 bytes at a null pointer and 12 bytes\n")
string(REPEAT "cudaErrorIllegalAddress\n" 6 every_call)
emulated_test(runtime.sticky COMMAND $<TARGET_FILE:emulated_runtime> sticky EXPECT "${fault}${every_call}")
emulated_test(runtime.fault_in_a_graph COMMAND $<TARGET_FILE:emulated_runtime> fault_in_a_graph EXPECT "${fault}cudaErrorIllegalAddress")
emulated_test(runtime.new_memory COMMAND $<TARGET_FILE:emulated_runtime> new_memory EXPECT "1000 of 1000 are NaN")
emulated_test(runtime.reset OPTIONS --memory 512 COMMAND $<TARGET_FILE:emulated_runtime> reset EXPECT
  "illegal write of 4 bytes [^\n]*that was freed\ncudaErrorIllegalAddress")
emulated_test(runtime.no_such_order OPTIONS --streams soon COMMAND $<TARGET_FILE:emulated_runtime>
  EXPECT "--streams .WEFT_EMULATE_STREAMS.: expected inorder, lazy, random, starve:K or queues:N, got 'soon'")

# Threads of Weft that name no device (device_in_use.cu), with two GPUs.
emulated_program(device_in_use device_in_use.cu LINK weft::weft)
set_target_properties(emulated_device_in_use PROPERTIES LINKER_LANGUAGE CXX)  # as all that links libweft.so: full RELRO
emulated_test(device_in_use OPTIONS --gpus 2 COMMAND $<TARGET_FILE:emulated_device_in_use>)
