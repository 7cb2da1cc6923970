// Counts visits by long addresses. The argument says how often.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

__attribute__((noinline)) static long visits(const std::vector<std::string> &addresses, long count)
{
    std::unordered_map<std::string, long> seen;
    for (long i = 0; i < count; i++)
        seen[addresses[i * 7919 % addresses.size()]]++; // the visit to name
    return seen[addresses[1]];
}

int main(int argc, char **argv)
{
    std::vector<std::string> addresses;
    for (int i = 0; i < 64; i++) {
        std::string path;
        for (int part = 0; part < 40; part++)
            path += "https://example.org/a/long/path/";
        addresses.push_back(path + std::to_string(i));
    }
    std::printf("%ld\n", visits(addresses, argc > 1 ? std::atol(argv[1]) : 1));
}
