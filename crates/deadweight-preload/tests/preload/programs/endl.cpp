// Writes lines, and flushes after each.
#include <iostream>
#include <string>

int main() {
    std::string line;
    int count = 0;
    while (std::getline(std::cin, line)) std::cout << ++count << ' ' << line << std::endl;
    std::cerr << "done" << std::endl;
    std::cout << std::unitbuf;
    for (int i = 0; i < 1000; i++) std::cout << i << '\n';
}
