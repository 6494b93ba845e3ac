# Writes OUTPUT, a header with the commit of SOURCE; touched only when the commit changes, so that nothing is rebuilt in vain.
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
set(content "#define SHARDSCAPE_GIT_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} known)
endif()
if(NOT "${known}" STREQUAL "${content}")
  file(WRITE ${OUTPUT} "${content}")
endif()
