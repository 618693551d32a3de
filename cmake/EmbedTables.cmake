# cmake -DTABLES=a;b -DOUTPUT=file.cpp -P EmbedTables.cmake: writes the array that lib/Tune/Tables.h declares. A literal a
# line, for compilers limit the length of one; FILE(STRINGS) would take `[` and `;` for list syntax, so it is done by regex.
set(text "// Generated from lib/Tune/tables: edit those files.\n#include \"Tables.h\"\n\nnamespace gemmc::tune {\n")
string(APPEND text "const EmbeddedTable embeddedTables[] = {\n")
foreach(file IN LISTS TABLES)
  file(READ "${file}" content)
  string(REPLACE "\n" "\n)table\"\n     R\"table(" content "${content}")
  get_filename_component(name "${file}" NAME)
  string(APPEND text "    {\"${name}\",\n     R\"table(${content})table\"},\n")
endforeach()
string(APPEND text "    {nullptr, nullptr}};\n} // namespace gemmc::tune\n")
file(WRITE "${OUTPUT}" "${text}")
