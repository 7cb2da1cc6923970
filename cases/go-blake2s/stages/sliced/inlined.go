package sliced

import (
	"math/bits"

	"example.org/blake2s/internal/compress"
)

// turn is mix on values. It has no index to count, and the compiler knows RotateLeft32 as one
// instruction: together that fits the inliner's budget.
func turn(a, b, c, d, x, y uint32) (uint32, uint32, uint32, uint32) {
	a += b + x
	d = bits.RotateLeft32(d^a, -16)
	c += d
	b = bits.RotateLeft32(b^c, -12)
	a += b + y
	d = bits.RotateLeft32(d^a, -8)
	c += d
	b = bits.RotateLeft32(b^c, -7)
	return a, b, c, d
}

// Inlined is Called with turn for mix.
func Inlined(h []uint32, block []byte, counted uint64, last bool) {
	v, m := state(h, block, counted, last)
	for _, s := range compress.Sigma {
		v[0], v[4], v[8], v[12] = turn(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]])
		v[1], v[5], v[9], v[13] = turn(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]])
		v[2], v[6], v[10], v[14] = turn(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]])
		v[3], v[7], v[11], v[15] = turn(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]])
		v[0], v[5], v[10], v[15] = turn(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]])
		v[1], v[6], v[11], v[12] = turn(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]])
		v[2], v[7], v[8], v[13] = turn(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]])
		v[3], v[4], v[9], v[14] = turn(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]])
	}
	for i := range h {
		h[i] ^= v[i] ^ v[i+8]
	}
}
