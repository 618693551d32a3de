# The files of lib/Tune/tables (measured choices that gemmc ships) become one generated source of the room Tune.
file(GLOB tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/Tune/tables/*.yaml)
list(SORT tables)
set(generated ${PROJECT_BINARY_DIR}/generated/EmbeddedTables.cpp)
add_custom_command(
  OUTPUT ${generated}
  COMMAND ${CMAKE_COMMAND} "-DTABLES=${tables}" -DOUTPUT=${generated} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedTables.cmake
  DEPENDS ${tables} ${PROJECT_SOURCE_DIR}/cmake/EmbedTables.cmake
  VERBATIM)
target_sources(gemmcTune PRIVATE ${generated})
target_include_directories(gemmcTune PRIVATE ${PROJECT_SOURCE_DIR}/lib/Tune)
