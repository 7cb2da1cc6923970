//go:build goexperiment.simd && amd64

package compress

import (
	"math"
	"simd/archsimd"
	"time"
)

// vectors says that blocks are compressed four words at a time: the machine can, and does it faster.
// Not all that can do: where an operation on vectors takes two cycles, the pure form overtakes it.
var vectors = archsimd.X86.AVX512() && faster()

// Use chooses the vectors or the pure form for all that follows, and says whether the machine can.
// For tests and measurements.
func Use(wanted bool) bool {
	if wanted && !archsimd.X86.AVX512() {
		return false
	}
	vectors = wanted
	return true
}

// faster lets both forms compress the same, and compares the best times: about ten microseconds.
func faster() bool {
	const blocks, tries = 4, 8
	var h [8]uint32
	var message [blocks * Block]byte
	pure, vector := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range tries {
		begin := time.Now()
		for i := range blocks {
			Pure(&h, (*[Block]byte)(message[i*Block:]), 0, Flags{})
		}
		between := time.Now()
		simd(&h, message[:], 0)
		pure, vector = min(pure, between.Sub(begin)), min(vector, time.Since(between))
	}
	return vector < pure
}

// orders is Sigma in the order in which the rounds take words: for the columns the first and the
// second word of each of the four, for the diagonals the same.
//
// Before the diagonals three rows have to be turned against the fourth. All wait for the second
// row, so it is the one that stays, and the diagonal that starts in column 3 comes first.
var orders = func() (orders [10][16]uint32) {
	for round, sigma := range Sigma {
		for i := range 4 {
			diagonal := (i + 3) % 4
			orders[round][i] = uint32(sigma[2*i])
			orders[round][4+i] = uint32(sigma[2*i+1])
			orders[round][8+i] = uint32(sigma[8+2*diagonal])
			orders[round][12+i] = uint32(sigma[8+2*diagonal+1])
		}
	}
	return
}()

var (
	start    = [2][4]uint32{{IV0, IV1, IV2, IV3}, {IV4, IV5, IV6, IV7}}
	last     = [4]uint32{IV4, IV5, ^uint32(IV6), IV7}
	lastNode = [4]uint32{IV4, IV5, ^uint32(IV6), ^uint32(IV7)}
)

// ordered is a message with its words in the order of each round.
type ordered [10][16]uint32

// order puts the words of a message in order, on vectors of 64 bytes.
//
// While the upper halves of these are in use, an instruction of the older kind, such as the compiler
// puts registers away with, can take hundreds of cycles. So this is all that is done with them,
// and they are cleared at the end.
func (o *ordered) order(message archsimd.Uint32x16) {
	for round := range o {
		message.Permute(archsimd.LoadUint32x16(&orders[round])).Store(&o[round])
	}
	archsimd.ClearAVXUpperBits()
}

// simd compresses blocks that are not the last, after counted bytes.
func simd(h *[8]uint32, blocks []byte, counted uint64) {
	var message ordered
	for len(blocks) >= Block {
		counted += Block
		message.order(archsimd.LoadUint8x64((*[Block]byte)(blocks)).AsUint32x16())
		message.mix(h, counted, &start[1])
		blocks = blocks[Block:]
	}
}

// simdLast compresses the last block, of which tail is message, up to whose end there are counted
// bytes.
func simdLast(h *[8]uint32, tail []byte, counted uint64, ofLastNode bool) {
	var message ordered
	message.order(archsimd.LoadUint8x64SlicePart(tail).AsUint32x16())
	row := &last
	if ofLastNode {
		row = &lastNode
	}
	message.mix(h, counted, row)
}

// mix does the ten rounds. row is the last row of the state before the count is added.
func (o *ordered) mix(h *[8]uint32, counted uint64, row *[4]uint32) {
	h0 := archsimd.LoadUint32x4((*[4]uint32)(h[:4]))
	h1 := archsimd.LoadUint32x4((*[4]uint32)(h[4:]))
	a, b, c := h0, h1, archsimd.LoadUint32x4(&start[0])
	var count archsimd.Uint64x2
	d := archsimd.LoadUint32x4(row).Xor(count.SetElem(0, counted).AsUint32x4())
	for round := range o {
		m := &o[round]
		a = a.Add(archsimd.LoadUint32x4((*[4]uint32)(m[0:]))).Add(b)
		d = d.Xor(a).RotateAllRight(16)
		c = c.Add(d)
		b = b.Xor(c).RotateAllRight(12)
		a = a.Add(archsimd.LoadUint32x4((*[4]uint32)(m[4:]))).Add(b)
		d = d.Xor(a).RotateAllRight(8)
		c = c.Add(d)
		b = b.Xor(c).RotateAllRight(7)

		a = a.PermuteScalars(3, 0, 1, 2)
		d = d.PermuteScalars(2, 3, 0, 1)
		c = c.PermuteScalars(1, 2, 3, 0)

		a = a.Add(archsimd.LoadUint32x4((*[4]uint32)(m[8:]))).Add(b)
		d = d.Xor(a).RotateAllRight(16)
		c = c.Add(d)
		b = b.Xor(c).RotateAllRight(12)
		a = a.Add(archsimd.LoadUint32x4((*[4]uint32)(m[12:]))).Add(b)
		d = d.Xor(a).RotateAllRight(8)
		c = c.Add(d)
		b = b.Xor(c).RotateAllRight(7)

		a = a.PermuteScalars(1, 2, 3, 0)
		d = d.PermuteScalars(2, 3, 0, 1)
		c = c.PermuteScalars(3, 0, 1, 2)
	}
	h0.Xor(a).Xor(c).Store((*[4]uint32)(h[:4]))
	h1.Xor(b).Xor(d).Store((*[4]uint32)(h[4:]))
}
