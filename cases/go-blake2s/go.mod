module example.org/blake2s

go 1.24
