//go:build arenacheck

package arena

import "fmt"

// Handles carry 8 bits of the generation of their value beside 24 bits of index: after 256 reuses
// of one value a stale handle may go unnoticed, so this finds mistakes in tests and proves nothing.
const (
	indexBits  = 24
	mostValues = 1<<indexBits - 1
)

type generations struct {
	of []uint8
}

// handle is that of the value before this index.
func (g *generations) handle(behind uint32) uint32 {
	index := behind - 1
	for len(g.of) <= int(index) {
		g.of = append(g.of, 0)
	}
	return uint32(g.of[index])<<indexBits | behind
}

func (g *generations) index(handle uint32) uint32 {
	index := handle&mostValues - 1
	if handle&mostValues == 0 || int(index) >= len(g.of) {
		panic(fmt.Sprintf("arena: handle %#x names nothing", handle))
	}
	if g.of[index] != uint8(handle>>indexBits) {
		panic(fmt.Sprintf("arena: handle %#x is used after it was freed", handle))
	}
	return index
}

func (g *generations) retire(index uint32) { g.of[index]++ }

func (g *generations) retireAll(used uint32) {
	for i := range g.of[:min(int(used), len(g.of))] {
		g.of[i]++
	}
}
