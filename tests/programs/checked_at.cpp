// Smooths a flat field; every access goes through at(), which checks the index.
#include <cstdio>
#include <cstdlib>
#include <vector>

__attribute__((noinline)) static void smooth(const std::vector<int> &in, std::vector<int> &out, int width, int height)
{
    for (int y = 1; y < height - 1; y++)
        for (int x = 1; x < width - 1; x++) {
            std::size_t at = y * width + x;
            out.at(at) = in.at(at - 1) + in.at(at + 1) + in.at(at - width) + in.at(at + width) - 4 * in.at(at); // the line to name
        }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
    std::vector<int> a(512 * 512), b(512 * 512);
    for (std::size_t i = 0; i < a.size(); i++)
        a[i] = i * 7 % 13;
    for (int i = 0; i < rounds; i++) {
        smooth(a, b, 512, 512);
        a.swap(b);
    }
    std::printf("%d\n", a[100000]);
}
