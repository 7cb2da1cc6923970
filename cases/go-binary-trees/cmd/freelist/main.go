// Binary trees of handles whose nodes are freed one by one and handed out again.
package main

import (
	binarytrees "example.org/binarytrees"
	"example.org/binarytrees/arena"
)

type handle = arena.Handle[node]

type node struct{ left, right handle }

var nodes arena.Arena[node]

func build(depth int) handle {
	if depth == 0 {
		return nodes.Put(node{})
	}
	return nodes.Put(node{build(depth - 1), build(depth - 1)})
}

func count(h handle) int {
	n := nodes.At(h)
	if n.left == 0 {
		return 1
	}
	return 1 + count(n.left) + count(n.right)
}

func free(h handle) {
	if n := *nodes.At(h); n.left != 0 {
		free(n.left)
		free(n.right)
	}
	nodes.Free(h)
}

func main() {
	binarytrees.Main(binarytrees.Forest{
		Count: func(depth int) int {
			root := build(depth)
			defer free(root)
			return count(root)
		},
		Keep: func(depth int) func() int {
			root := build(depth)
			return func() int { return count(root) }
		},
	})
}
