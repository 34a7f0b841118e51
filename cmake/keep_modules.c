/* cmake/keep_modules.c: preloaded into tests, so that libraries that are closed stay loaded, and their frames keep their names. */
int dlclose(void* handle) {
  (void)handle;
  return 0;
}
