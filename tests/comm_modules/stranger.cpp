// tests/comm_modules/stranger.cpp: a shared library with the name of a module, which it is not.
extern "C" int stranger();
int stranger() { return 1; }
