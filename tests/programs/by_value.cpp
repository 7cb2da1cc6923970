// Looks up prices in a large table of parameters that is passed by value.
#include <cstdio>
#include <cstdlib>

struct Params {
    double rate[64];
    double limit[64];
    double fee[128]; // 2 KiB in all
};

__attribute__((noinline)) static double price(Params p, unsigned at)
{
    return p.rate[at % 64] * 2 + p.limit[(at >> 6) % 64] - p.fee[at % 128];
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? std::atoi(argv[1]) : 3000000;
    static Params p;
    for (int i = 0; i < 64; i++)
        p.rate[i] = i * 0.5, p.limit[i] = i, p.fee[i] = 1.0 / (i + 1);
    double sum = 0;
    for (unsigned i = 0; i < rounds; i++)
        sum += price(p, i * 2654435761u >> 8); // the line to name
    std::printf("%.3f\n", sum);
}
