// Binary trees of pointers whose nodes come from a sync.Pool and are put back one by one.
package main

import (
	"sync"

	binarytrees "example.org/binarytrees"
)

type node struct{ left, right *node }

var pool = sync.Pool{New: func() any { return new(node) }}

func build(depth int) *node {
	n := pool.Get().(*node)
	n.left, n.right = nil, nil
	if depth > 0 {
		n.left, n.right = build(depth-1), build(depth-1)
	}
	return n
}

func (n *node) count() int {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func put(n *node) {
	if n.left != nil {
		put(n.left)
		put(n.right)
	}
	pool.Put(n)
}

func main() {
	binarytrees.Main(binarytrees.Forest{
		Count: func(depth int) int {
			root := build(depth)
			defer put(root)
			return root.count()
		},
		Keep: func(depth int) func() int { return build(depth).count },
	})
}
