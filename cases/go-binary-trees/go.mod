module example.org/binarytrees

go 1.24
