// Deep and virtual calls with large frames, inlined algorithms, allocation and library calls, for unwinding.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct Node {
    std::map<int, std::string> names;
    virtual int work(int n) = 0;
    virtual ~Node() {}
};

struct Leaf : Node {
    int work(int n) override {
        std::vector<int> v(n);
        for (int i = 0; i < n; i++) v[i] = (i * 7919) % n;
        std::sort(v.begin(), v.end());
        names[n % 100] = std::to_string(v[n / 2]);
        return v[n / 3];
    }
};

__attribute__((noinline)) int deep(Node *node, int depth, int n) {
    if (depth == 0) return node->work(n);
    // Together more than the 8 KiB that small rings hold of a stack.
    char scratch[2048];
    memset(scratch, depth, sizeof scratch);
    int below = deep(node, depth - 1, n);
    return below + scratch[below & 63];
}

__attribute__((noinline)) long fill(char *at, size_t n) {
    long sum = 0;
    for (int i = 0; i < 10; i++) {
        memset(at, i, n);
        sum += at[n / 2];
    }
    return sum;
}

int main() {
    Leaf leaf;
    long sum = 0;
    std::vector<char> big(1 << 18);
    for (int i = 0; i < 5000; i++) sum += deep(&leaf, 8 + i % 4, 1000 + i) + fill(big.data(), big.size() / 8);
    printf("%ld\n", sum);
}
