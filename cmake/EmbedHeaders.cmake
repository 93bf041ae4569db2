# lathe_embed_headers(TARGET OUTPUT file...): OUTPUT.inc in the target's binary folder holds an
# initialiser {"name", "text"}, for each file, for a std::map.
function(lathe_embed_headers target output)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${output}.inc)
  string(REPLACE ";" "," joined "${ARGN}")
  add_custom_command(OUTPUT ${table} DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
    COMMAND ${CMAKE_COMMAND} -DINPUTS=${joined} -DOUTPUT=${table} -DTABLE=ON
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake)
  target_sources(${target} PRIVATE ${table})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
