// Sums prices; an article without a price is found out by an exception.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unordered_map>

static std::unordered_map<int, int> prices;

static int price(int article)
{
    try {
        return prices.at(article); // the line to name
    } catch (const std::out_of_range &) {
        return 7;
    }
}

int main(int argc, char **argv)
{
    int lines = argc > 1 ? std::atoi(argv[1]) : 200000;
    for (int i = 0; i < 1000; i++)
        prices[i * 2] = i;
    long sum = 0;
    for (int i = 0; i < lines; i++)
        sum += price(i % 2000);
    std::printf("%ld\n", sum);
    return 0;
}
