#!/usr/bin/env bash
# tests/docs/check_reference.sh: Doxygen reads the public headers without a warning. Usage: check_reference.sh DOXYGEN OUTPUT_FOLDER,
# from the root of the source.
set -eu
{
  cat docs/Doxyfile
  printf 'GENERATE_HTML = NO\nGENERATE_XML = YES\nOUTPUT_DIRECTORY = "%s"\n' "$2"
} | "$1" -
