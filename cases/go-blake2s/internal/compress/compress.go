// Package compress is the compression function of BLAKE2s.
package compress

//go:generate go run unroll.go

// Block is how many bytes are compressed at a time.
const Block = 64

// The initial state, which is that of SHA-256.
const (
	IV0 = 0x6a09e667
	IV1 = 0xbb67ae85
	IV2 = 0x3c6ef372
	IV3 = 0xa54ff53a
	IV4 = 0x510e527f
	IV5 = 0x9b05688c
	IV6 = 0x1f83d9ab
	IV7 = 0x5be0cd19
)

// IV is the initial state.
var IV = [8]uint32{IV0, IV1, IV2, IV3, IV4, IV5, IV6, IV7}

// Sigma is the order of the message's words in each round.
var Sigma = [10][16]uint8{
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}

// Flags are what the last block of a message is told by.
type Flags struct{ Block, Node uint32 }

// Blocks compresses whole blocks that are not the last, and counts their bytes.
func Blocks(h *[8]uint32, blocks []byte, counted *uint64) {
	if vectors {
		simd(h, blocks, *counted)
		*counted += uint64(len(blocks))
		return
	}
	for len(blocks) >= Block {
		*counted += Block
		Pure(h, (*[Block]byte)(blocks), *counted, Flags{})
		blocks = blocks[Block:]
	}
}

// Last compresses the last block, of which tail is message, after counted others.
func Last(h *[8]uint32, tail []byte, counted uint64, lastNode bool) {
	counted += uint64(len(tail))
	if vectors {
		simdLast(h, tail, counted, lastNode)
		return
	}
	flags := Flags{Block: ^uint32(0)}
	if lastNode {
		flags.Node = ^uint32(0)
	}
	var padded [Block]byte
	copy(padded[:], tail)
	Pure(h, &padded, counted, flags)
}
