// packaging/shared.cpp: a shared library needs a source of its own; all it has comes from the static libraries.
