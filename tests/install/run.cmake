# SPDX-License-Identifier: Apache-2.0
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run("install" ${CMAKE_COMMAND} --install ${WEFT_BINARY_DIR} --prefix ${WORK}/prefix)
# A move shows that nothing installed remembers where it was built or first installed.
file(RENAME ${WORK}/prefix ${WORK}/moved)
# Where this build found its own libraries, the program must look too.
list(JOIN PREFIXES "\\;" prefixes)
run("configure" ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} "-DCMAKE_PREFIX_PATH=${WORK}/moved\\;${prefixes}"
    -DCMAKE_BUILD_TYPE=Release -DREADME=${SOURCE}/../../../README.md)
run("build" ${CMAKE_COMMAND} --build ${WORK}/build)
run("the program" ${WORK}/build/outside ${WORK})
if(NOT output MATCHES "the outside program trained")
  message(FATAL_ERROR "the program printed:\n${output}")
endif()
run("the README's program" ${WORK}/build/readme)
if(NOT output MATCHES "step 9 loss [0-9.]+\n")
  message(FATAL_ERROR "the README's program printed:\n${output}")
endif()
file(REMOVE_RECURSE ${WORK})
