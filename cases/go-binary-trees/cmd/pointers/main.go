// Binary trees of pointers: every node is an object of its own, which the collector follows.
package main

import binarytrees "example.org/binarytrees"

type node struct{ left, right *node }

func build(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{build(depth - 1), build(depth - 1)}
}

func (n *node) count() int {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func main() {
	binarytrees.Main(binarytrees.Forest{
		Count: func(depth int) int { return build(depth).count() },
		Keep:  func(depth int) func() int { return build(depth).count },
	})
}
