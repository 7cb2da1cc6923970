// Loads and unloads a library at changing addresses, among many mappings of its file:
// reloads LIBRARY TIMES MAPPINGS. The library is this file too, built with -DLIBRARY -shared.
#ifdef LIBRARY
double work_of_library(int n) {
    double sum = 1;
    for (int i = 1; i < n; i++) sum += 1.0 / i / sum;
    return sum;
}
#else
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int file = open(argv[1], O_RDONLY);
    // Every other page is executable; otherwise they would be one mapping.
    for (int i = 0; i < atoi(argv[3]); i++)
        if (mmap(NULL, 4096, PROT_READ | (i & 1 ? PROT_EXEC : 0), MAP_PRIVATE, file, 0) == MAP_FAILED) return 3;
    double sum = 0;
    for (int i = 0; i < atoi(argv[2]); i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        double (*work)(int) = library ? (double (*)(int))dlsym(library, "work_of_library") : NULL;
        if (!work) return 4;
        sum += work(40000);
        // This mapping makes the kernel load the next library elsewhere.
        if (i % 3 == 0) mmap(NULL, 65536 * (1 + i % 5), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        dlclose(library);
    }
    printf("%d\n", sum > 0);
    return 0;
}
#endif
