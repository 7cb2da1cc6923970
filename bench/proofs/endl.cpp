// tiny-writes: every line is flushed. Fast: at the end.
#include <iostream>

int main()
{
    unsigned x = 1;
    for (int line = 0; line < 150000; line++) {
        x = x * 1664525u + 1013904223u;
        std::cout << line << ' ' << x;
        if (FAST)
            std::cout << '\n';
        else
            std::cout << std::endl;
    }
}
