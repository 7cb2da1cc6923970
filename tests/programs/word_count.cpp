// word_count SENTENCES: makes text and counts its letters in pairs: useful work in its own code.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

static std::string make_text(long sentences)
{
    std::string text;
    text.reserve(static_cast<std::size_t>(sentences) * 32);
    unsigned seed = 7;
    for (long i = 0; i < sentences * 32; i++) {
        seed = seed * 1664525u + 1013904223u;
        text.push_back(static_cast<char>('a' + (seed >> 24) % 26));
    }
    return text;
}

static unsigned long count_pairs(const std::string &text)
{
    static std::array<unsigned, 65536> pairs;
    unsigned long best = 0;
    for (std::size_t i = 1; i < text.size(); i++) {
        auto pair = static_cast<unsigned char>(text[i - 1]) * 256u + static_cast<unsigned char>(text[i]);
        if (++pairs[pair] > best)
            best = pairs[pair];
    }
    return best;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    std::string text = make_text(std::atol(argv[1]));
    unsigned long best = 0;
    for (int round = 0; round < 40; round++)
        best = count_pairs(text);
    std::printf("%lu\n", best);
    return 0;
}
