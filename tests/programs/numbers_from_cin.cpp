// Adds up numbers from standard input. `numbers_from_cin COUNT [own]`: writes them to a file first and reads that; with
// `own`, the stream has a buffer of its own and is not in step with C's stdin.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <unistd.h>

int main(int argc, char **argv) {
    const long count = argc > 1 ? std::atol(argv[1]) : 1000000;
    std::FILE *file = std::tmpfile();
    if (!file) {
        return 1;
    }
    for (long i = 0; i < count; i++) {
        std::fprintf(file, "%ld\n", i * 7919 % 1000003);
    }
    std::rewind(file);
    if (dup2(fileno(file), 0) < 0) {
        return 1;
    }
    if (argc > 2 && std::strcmp(argv[2], "own") == 0) {
        std::ios::sync_with_stdio(false);
    }
    long sum = 0, value;
    while (std::cin >> value) { // the number to name
        sum += value;
    }
    std::printf("%ld\n", sum);
}
