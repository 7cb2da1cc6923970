// 600 000 calls of `text::parse`, each with two allocations: 1524 bytes, too many for the cache of a thread in glibc. `depth` calls itself.
#include <cstdio>
#include <memory>
#include <vector>

static volatile unsigned long sum;

namespace text {
__attribute__((noinline)) void parse(int i) {
    auto key = std::make_unique<long[]>(3);      // 24 bytes
    std::vector<char> value(1500);               // the line to name
    key[i % 3] = i;
    value[i % 1500] = 1;
    sum += key[i % 3] + value[i % 1500];
}
}

__attribute__((noinline)) int depth(int n) {
    auto here = std::make_unique<int>(n);
    return n == 0 ? 0 : depth(n - 1) + *here;
}

int main() {
    for (int i = 0; i < 600000; i++) text::parse(i);
    for (int i = 0; i < 30000; i++) sum += depth(9);
    std::printf("%lu\n", sum);
}
