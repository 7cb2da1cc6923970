package sliced

import "example.org/blake2s/internal/compress"

func rotate(x uint32, n int) uint32 { return x>>n | x<<(32-n) }

// mix is the heart of it, as the RFC writes it: 80 times per block it changes four words of v. For
// the compiler that is too much to be put in its place.
func mix(v []uint32, a, b, c, d int, x, y uint32) {
	v[a] += v[b] + x
	v[d] = rotate(v[d]^v[a], 16)
	v[c] += v[d]
	v[b] = rotate(v[b]^v[c], 12)
	v[a] += v[b] + y
	v[d] = rotate(v[d]^v[a], 8)
	v[c] += v[d]
	v[b] = rotate(v[b]^v[c], 7)
}

// Called calls a function for each of the 80 steps.
func Called(h []uint32, block []byte, counted uint64, last bool) {
	v, m := state(h, block, counted, last)
	for _, s := range compress.Sigma {
		mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]])
		mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]])
		mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]])
		mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]])
		mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]])
		mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]])
		mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]])
		mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]])
	}
	for i := range h {
		h[i] ^= v[i] ^ v[i+8]
	}
}
