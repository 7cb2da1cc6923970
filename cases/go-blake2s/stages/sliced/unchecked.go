package sliced

import "example.org/blake2s/internal/compress"

// Unchecked is Inlined with indexes that need no check: into an array of 16, and below 16.
func Unchecked(h []uint32, block []byte, counted uint64, last bool) {
	v, words := state(h, block, counted, last)
	m := (*[16]uint32)(words)
	for _, s := range compress.Sigma {
		v[0], v[4], v[8], v[12] = turn(v[0], v[4], v[8], v[12], m[s[0]&15], m[s[1]&15])
		v[1], v[5], v[9], v[13] = turn(v[1], v[5], v[9], v[13], m[s[2]&15], m[s[3]&15])
		v[2], v[6], v[10], v[14] = turn(v[2], v[6], v[10], v[14], m[s[4]&15], m[s[5]&15])
		v[3], v[7], v[11], v[15] = turn(v[3], v[7], v[11], v[15], m[s[6]&15], m[s[7]&15])
		v[0], v[5], v[10], v[15] = turn(v[0], v[5], v[10], v[15], m[s[8]&15], m[s[9]&15])
		v[1], v[6], v[11], v[12] = turn(v[1], v[6], v[11], v[12], m[s[10]&15], m[s[11]&15])
		v[2], v[7], v[8], v[13] = turn(v[2], v[7], v[8], v[13], m[s[12]&15], m[s[13]&15])
		v[3], v[4], v[9], v[14] = turn(v[3], v[4], v[9], v[14], m[s[14]&15], m[s[15]&15])
	}
	for i := range h {
		h[i] ^= v[i] ^ v[i+8]
	}
}
