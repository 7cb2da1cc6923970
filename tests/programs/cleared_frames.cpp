// Decodes frames: each frame is copied into a fresh vector, which its constructor clears at full size first.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr std::size_t kLargest = 32768;

static unsigned decode(const unsigned char *in, std::size_t length)
{
    std::vector<unsigned char> frame(kLargest); // the line to name
    std::memcpy(frame.data(), in, length);
    unsigned sum = 1;
    for (std::size_t i = 0; i < length; i++)
        sum = sum * 31 + frame[i];
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 200000;
    std::vector<unsigned char> input(4096, 'x');
    unsigned sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += decode(input.data(), 300 + i % 300);
    std::printf("%u\n", sum);
}
