// What both C++ forms share: how many trees of which depth, and what is printed; as ../../report.go.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>

template <typename Count, typename Keep>
int run(int argc, char** argv, Count count, Keep keep) {
    constexpr int kLeast = 4;
    const int most = std::max(argc > 1 ? std::atoi(argv[1]) : 10, kLeast + 2);
    std::printf("stretch tree of depth %d\t check: %ld\n", most + 1, count(most + 1));
    const auto kept = keep(most);
    for (int depth = kLeast; depth <= most; depth += 2) {
        const long trees = 1L << (most - depth + kLeast);
        long nodes = 0;
        for (long i = 0; i < trees; ++i) nodes += count(depth);
        std::printf("%ld\t trees of depth %d\t check: %ld\n", trees, depth, nodes);
    }
    std::printf("long lived tree of depth %d\t check: %ld\n", most, kept());
    return 0;
}
