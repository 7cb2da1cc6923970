// cleared_lines KILOBYTES: objects of 8 MiB, cleared completely; then KILOBYTES of each are filled.
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

struct Line {
    std::size_t filled = 0;
    std::array<unsigned char, 8 << 20> bytes;
};

__attribute__((noinline)) static unsigned long fill(Line &line, std::size_t size, int value) {
    line.filled = size;
    std::memset(line.bytes.data(), value, size);
    unsigned long sum = 0;
    for (std::size_t i = 0; i < line.filled; i++)
        sum = sum * 31 + line.bytes[i];
    return sum;
}

int main(int argc, char **argv) {
    std::size_t size = argc > 1 ? std::strtoul(argv[1], nullptr, 10) * 1024 : 0;
    if (size == 0 || size > sizeof(Line::bytes))
        return 2;
    std::vector<std::shared_ptr<Line>> lines;
    unsigned long sum = 0;
    for (int i = 0; i < 64; i++) {
        lines.push_back(std::make_shared<Line>()); /* the line to name */
        sum += fill(*lines.back(), size, i + 1);
    }
    std::printf("%lu\n", sum);
}
