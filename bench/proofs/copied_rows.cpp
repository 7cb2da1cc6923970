// copied_rows: takes each row of a table as a vector of its own, and only reads it. FAST reads the row where it is.
#include <cstdio>
#include <numeric>
#include <vector>

using Row = std::vector<unsigned>;

int main()
{
    constexpr unsigned kRows = 512, kWidth = 6000, kRounds = 600000;
    std::vector<Row> table(kRows, Row(kWidth));
    unsigned long sum = 0;
    for (unsigned row = 0; row < kRows; row++)
        for (unsigned at = 0; at < kWidth; at++)
            table[row][at] = row * 31 + at;
    for (unsigned round = 0; round < kRounds; round++) {
#if FAST
        const Row &row = table[round * 7 % kRows];
#else
        const Row row = table[round * 7 % kRows];
#endif
        for (unsigned at = round % 16; at < kWidth; at += 16)
            sum = sum * 31 + row[at];
    }
    std::printf("%lu\n", sum);
}
