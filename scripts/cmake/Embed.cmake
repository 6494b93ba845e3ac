# shardscape_embed(OUT.cc HEADER NAMESPACE NAME=FILE ...): the texts of files as functions NAME() of a C++ source (EmbedText.cmake), which
# HEADER declares, so that a program needs no files beside it. Files are joined by '+'.
set(shardscape_embed_script ${CMAKE_CURRENT_LIST_DIR}/EmbedText.cmake)
function(shardscape_embed output header namespace)
  list(JOIN ARGN " " texts)
  if(PROJECT_SOURCE_DIR MATCHES "[ +]" OR PROJECT_BINARY_DIR MATCHES "[ +]")
    message(FATAL_ERROR "The texts in the program are listed with blanks and '+': build where no folder's name has one")
  endif()
  string(REGEX REPLACE "(^|;)[a-z_]+=" ";" files "${ARGN}")
  string(REPLACE "+" ";" files "${files}")
  list(REMOVE_ITEM files "")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DNAMESPACE=${namespace} "-DTEXTS=${texts}" -P ${shardscape_embed_script}
    DEPENDS ${files} ${shardscape_embed_script}
    VERBATIM)
endfunction()
