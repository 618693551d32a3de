# The files of ptx_templates/ become one generated source of the room PTX, so that the binary needs no file beside it.
file(GLOB_RECURSE templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ptx_templates/*.ptx)
list(SORT templates)
set(generated ${PROJECT_BINARY_DIR}/generated/EmbeddedTemplates.cpp)
add_custom_command(
  OUTPUT ${generated}
  COMMAND ${CMAKE_COMMAND} "-DTEMPLATES=${templates}" -DROOT=${PROJECT_SOURCE_DIR}/ptx_templates -DOUTPUT=${generated}
          -P ${PROJECT_SOURCE_DIR}/cmake/EmbedTemplates.cmake
  DEPENDS ${templates} ${PROJECT_SOURCE_DIR}/cmake/EmbedTemplates.cmake
  VERBATIM)
target_sources(gemmcPTX PRIVATE ${generated})
target_include_directories(gemmcPTX PRIVATE ${PROJECT_SOURCE_DIR}/lib/PTX)
