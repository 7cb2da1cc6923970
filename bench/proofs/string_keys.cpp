// allocation: a new string for each look-up. Fast: a view.
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

int main()
{
    std::map<std::string, unsigned, std::less<>> count;
    std::string text;
    for (int i = 0; i < 300; i++)
        text += "a word that is longer than small ones " + std::to_string(i % 10) + '\n';
    for (int round = 0; round < 30000; round++)
        for (size_t at = 0; at < text.size();) {
            size_t end = text.find('\n', at);
            std::string_view line(text.data() + at, end - at);
#if FAST
            auto found = count.find(line);
            if (found == count.end())
                found = count.emplace(line, 0).first;
            found->second++;
#else
            count[std::string(line)]++;
#endif
            at = end + 1;
        }
    std::printf("%zu %u\n", count.size(), count.begin()->second);
}
