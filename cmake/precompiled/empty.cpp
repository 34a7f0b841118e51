// cmake/precompiled/empty.cpp: the source of the targets that compile the headers of this folder.
int main() {}
