// Writes measurements as text; each number gets a stream of its own.
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <string>

static std::string decimal(double value)
{
    std::ostringstream out; // the line to name
    out << std::fixed << std::setprecision(2) << value; // or this one
    return out.str();
}

int main(int argc, char **argv)
{
    int numbers = argc > 1 ? std::atoi(argv[1]) : 600000;
    unsigned long sum = 0;
    for (int i = 0; i < numbers; i++)
        for (char c : decimal(i * 0.37))
            sum = sum * 31 + static_cast<unsigned char>(c);
    std::printf("%lu\n", sum);
    return 0;
}
