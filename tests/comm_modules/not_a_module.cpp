// tests/comm_modules/not_a_module.cpp: a shared library that has the name of a transport module and is none.
extern "C" int not_a_module();
int not_a_module() { return 1; }
