# SPDX-License-Identifier: Apache-2.0
# weft-emulate --check streams: each planted fault is said, in every order of streams; its repaired twin and correct programs are
# silent. A program in which something was found ends with 86.
emulated_program(stream_faults stream_faults.cu)
target_include_directories(emulated_stream_faults PRIVATE ${PROJECT_SOURCE_DIR})

# order_fault(PROGRAM NAME text options…)
function(order_fault program name expect)
  foreach(order inorder lazy random)
    emulated_test(${program}.${name}.${order} OPTIONS --check streams --streams ${order} ${ARGN}
      COMMAND $<TARGET_FILE:emulated_${program}> ${name} EXPECT "${expect}")
    emulated_test(${program}.${name}_right.${order} OPTIONS --check streams --streams ${order} ${ARGN}
      COMMAND $<TARGET_FILE:emulated_${program}> ${name}_right)
  endforeach()
endfunction()
function(stream_fault name expect)
  order_fault(stream_faults ${name} "${expect}")
endfunction()

set(bytes "bytes 0..16383 of the device allocation of 16384 bytes")
set(add "no order between streams: *\n *kernel [^\n]*add\\(float[^\n]*\n *writes,")
stream_fault(two_kernels "${add}\n *kernel [^\n]*copy[^\n]*\n *reads ${bytes}.\n *missing: an event of stream [0-9]+")
stream_fault(asynchronous_read "${add}\n *kernel [^\n]*copy_later[^\n]*\n *reads bytes 0..1023 of the device allocation of 16384")
stream_fault(asynchronous_write "no order between streams: *\n *kernel [^\n]*copy_later[^\n]*\n *writes,\n *kernel [^\n]*copy[^\n]*\n *reads bytes 0..1023 of")
stream_fault(atomic_and_fill "no order between streams: *\n *kernel [^\n]*count[^\n]*\n *updates,\n *a fill of 4 bytes[^\n]*\n *writes bytes 0..3 of")
stream_fault(copy_and_kernel "no order between streams: *\n *a copy of 16384 bytes from pinned host memory to device memory[^\n]*\n *writes,\n *kernel [^\n]*add[^\n]*\n *writes ${bytes}")
stream_fault(ring_reuse "no order between streams: *\n *kernel [^\n]*copy[^\n]*\n *reads,\n *a copy of 16384 bytes[^\n]*\n *writes ${bytes}")
stream_fault(recorded_too_early "${add}")
stream_fault(wrong_stream_waits "${add}")
stream_fault(recorded_again "${add}\n *kernel [^\n]*copy")
stream_fault(default_stream "${add}\n *kernel [^\n]*copy[^\n]*the default stream")
stream_fault(fill_and_stream "no order between streams: *\n *a fill of 16384 bytes, the default stream[^\n]*\n *writes,\n *kernel [^\n]*add")
stream_fault(freed_on_another_stream "no order between streams: *\n *kernel [^\n]*add[^\n]*\n *writes,\n *cudaFreeAsync[^\n]*\n *frees ${bytes}")
stream_fault(allocated_on_another_stream "no order between streams: *\n *cudaMallocAsync[^\n]*\n *writes,\n *a fill of 16384 bytes")
stream_fault(used_after_free "use after free in stream order: *\n *kernel [^\n]*copy[^\n]*\n *reads ${bytes},\n *which was freed by cudaFreeAsync")
stream_fault(pinned_freed "no order between streams: *\n *cudaFreeHost[^\n]*\n *frees,\n *a copy of 16384 bytes|no order between streams: *\n *a copy of 16384 bytes[^\n]*\n *reads,\n *cudaFreeHost[^\n]*\n *frees")
stream_fault(graph_branches "${add}\n *kernel [^\n]*add[^\n]*\n *writes ${bytes}.\n *missing: an edge from one node")
stream_fault(graph_and_kernel "no order between streams: *\n *kernel [^\n]*add[^\n]*a node of a graph that was added at [^\n]*launched at [^\n]*\n *writes,\n *kernel [^\n]*copy")
stream_fault(conditional_and_kernel "no order between streams: *\n *kernel [^\n]*add[^\n]*a node of a graph that was added at [^\n]*launched at [^\n]*\n *writes,\n *kernel [^\n]*copy|no order between streams: *\n *kernel [^\n]*copy[^\n]*\n *reads,\n *kernel [^\n]*add[^\n]*a node of a graph that was added at [^\n]*launched at [^\n]*\n *writes")
stream_fault(condition_of_nobody "a conditional node asks a value that no kernel of this launch has set")
stream_fault(source_written "the host wrote the source of a copy that had not run: *\n *a copy of 16384 bytes from pinned host memory")
stream_fault(cached_memory "no order between streams: *\n *kernel [^\n]*copy[^\n]*\n *reads,\n *a copy of 16384 bytes[^\n]*\n *writes ${bytes}")
# A kernel with cudaLaunchAttributeProgrammaticStreamSerialization: its accesses before griddepcontrol.wait.
set(early "kernel [^\n]*copy_early[^\n]*, before its griddepcontrol.wait, stream[^\n]*\n *")
set(wait "bytes 0..1023 of the device allocation of 16384 bytes.\n *missing: griddepcontrol.wait")
stream_fault(early_read "${add}\n *${early}reads ${wait}")
stream_fault(early_bulk_read "${add}\n *${early}reads ${wait}")
stream_fault(early_write "no order between streams: *\n *kernel [^\n]*copy[^\n]*\n *reads,\n *${early}writes ${wait}")
stream_fault(early_chain "${add}\n *${early}reads ${wait}")
stream_fault(early_without_wait "no griddepcontrol.wait: [^\n]*copy_early[^\n]*no thread executed")
stream_fault(early_in_graph "${add}\n *kernel [^\n]*copy_early[^\n]*, before its griddepcontrol.wait, stream [0-9]+, a node of a graph[^\n]*\n *reads ${wait}")
stream_fault(query "${add}\n *kernel [^\n]*copy")
# A host function that has run may have told the host anything: what follows it in other streams then counts as ordered.
emulated_test(stream_faults.host_function OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> host_function EXPECT "${add}")
emulated_test(stream_faults.host_function_right OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> host_function_right)
# What the host reads is not seen: the content is a NaN.
emulated_test(stream_faults.read_too_early OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> read_too_early EXPECT "read -?nan")
emulated_test(stream_faults.read_too_early_right OPTIONS --check streams --streams lazy
  COMMAND $<TARGET_FILE:emulated_stream_faults> read_too_early_right EXPECT "read 5")

foreach(order inorder lazy random)
  foreach(right no_conflict_right order_through_others_right destroyed_stream_right early_after_others_right)
    emulated_test(stream_faults.${right}.${order} OPTIONS --check streams --streams ${order}
      COMMAND $<TARGET_FILE:emulated_stream_faults> ${right})
  endforeach()
  emulated_test(machine.check_streams.${order} OPTIONS --check streams --streams ${order} COMMAND $<TARGET_FILE:emulated_machine>)
  emulated_test(faults.check_streams.streams.${order} OPTIONS --check streams --streams ${order}
    COMMAND $<TARGET_FILE:emulated_faults> streams EXPECT "no order between streams")
  emulated_test(faults.check_streams.pinned.${order} OPTIONS --check streams --streams ${order}
    COMMAND $<TARGET_FILE:emulated_faults> pinned EXPECT "the host wrote the source of a copy")
  foreach(right streams_right pinned_right)
    emulated_test(faults.check_streams.${right}.${order} OPTIONS --check streams --streams ${order}
      COMMAND $<TARGET_FILE:emulated_faults> ${right})
  endforeach()
endforeach()

# The same around the collectives of NCCL. In the order of the calls: who is first, what it does, who is next, what it does.
if(WEFT_HAVE_NCCL)
  emulated_program(nccl_faults nccl_faults.cu)
  target_include_directories(emulated_nccl_faults PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(emulated_nccl_faults SYSTEM PRIVATE ${WEFT_NCCL_INCLUDE})
  target_link_libraries(emulated_nccl_faults PRIVATE weft_nccl)
  function(nccl_fault name first first_does next next_does)
    order_fault(nccl_faults ${name} "no order between streams: *\n *${first}[^\n]*\n *${first_does},\n *${next}[^\n]*\n *${next_does}" --gpus 2)
  endfunction()
  set(all_reduce "all_reduce of 4096 f32 \\(sum\\)")
  set(swap "a group of 2 calls, the first: send of 4096 f32 to rank")
  set(captured "all_reduce of 4096 f32 \\(sum, captured into a graph\\)[^\n]*a node of a graph that was added at")
  nccl_fault(input "kernel [^\n]*add" writes "${all_reduce}" "reads ${bytes}")
  nccl_fault(result "${all_reduce}" writes "kernel [^\n]*copy" "reads ${bytes}")
  nccl_fault(gathered "all_gather of 2048 f32" writes "kernel [^\n]*add" "writes bytes 8192..16383 of")
  nccl_fault(scattered "reduce_scatter of 2048 f32 \\(sum\\)" reads "a fill of 8192 bytes" "writes bytes 8192..16383 of")
  nccl_fault(broadcast "kernel [^\n]*add" writes "broadcast of 4096 f32 \\(root 0\\)" "reads ${bytes}")
  nccl_fault(sent "${swap}" reads "kernel [^\n]*add" "writes ${bytes}")
  nccl_fault(received "${swap}" writes "kernel [^\n]*copy" "reads ${bytes}")
  nccl_fault(freed "${all_reduce}" writes "cudaFreeAsync" "frees ${bytes}")
  nccl_fault(cached "${all_reduce}" writes "a fill of 16384 bytes" "writes ${bytes}")
  nccl_fault(two_streams "${all_reduce}" writes "${all_reduce}" "reads ${bytes}")
  nccl_fault(streams_of_a_group "kernel [^\n]*add" writes "a group of 2 calls, the first: ${all_reduce}" "reads ${bytes}")
  nccl_fault(factor "all_reduce of 4096 f32 \\(scaled sum\\)" reads "kernel [^\n]*add" "writes bytes 0..3 of")
  nccl_fault(captured "${captured}" writes "kernel [^\n]*copy" "reads ${bytes}.\n *missing: an edge from one node")
  nccl_fault(captured_and_kernel "${captured}[^\n]*launched at" writes "kernel [^\n]*copy" "reads ${bytes}")
  order_fault(nccl_faults used_after_free "use after free in stream order: *\n *${all_reduce}[^\n]*\n *reads ${bytes},\n *which was freed by cudaFreeAsync" --gpus 2)
  emulated_test(nccl_faults.destroyed_right OPTIONS --check streams --streams lazy COMMAND $<TARGET_FILE:emulated_nccl_faults> destroyed_right)
  emulated_test(nccl.check_streams OPTIONS --gpus 4 --check streams COMMAND $<TARGET_FILE:emulated_nccl> TIMEOUT 600)
endif()
