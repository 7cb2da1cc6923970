// Package sliced is how one writes a hash first: everything is a slice that is made when it is
// needed. Its four compression functions differ only in how the rounds are written.
//
// It knows the usual hash only: 32 bytes, no key. For more, take package blake2s.
package sliced

import (
	"encoding/binary"

	"example.org/blake2s/internal/compress"
)

// A Compression compresses one block, up to whose end there are counted bytes.
type Compression func(h []uint32, block []byte, counted uint64, last bool)

// A Digest computes one hash.
type Digest struct {
	compress Compression
	h        []uint32
	counted  uint64
	buf      []byte
}

// parameters is the block that says which hash of the family it is.
func parameters() []byte {
	block := make([]byte, 32)
	block[0], block[2], block[3] = 32, 1, 1
	return block
}

// New returns a Digest that has seen nothing.
func New(compression Compression) *Digest {
	block := parameters()
	h := make([]uint32, len(compress.IV))
	for i := range h {
		h[i] = compress.IV[i] ^ binary.LittleEndian.Uint32(block[4*i:])
	}
	return &Digest{compress: compression, h: h, buf: make([]byte, 0, compress.Block)}
}

// Write adds p to what is hashed.
func (d *Digest) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		if len(d.buf) == compress.Block {
			d.counted += compress.Block
			d.compress(d.h, d.buf, d.counted, false)
			d.buf = d.buf[:0]
		}
		n := min(compress.Block-len(d.buf), len(p))
		d.buf = append(d.buf, p[:n]...)
		p = p[n:]
	}
	return written, nil
}

// Sum appends the hash of what was written to b.
func (d *Digest) Sum(b []byte) []byte {
	// More may be written afterwards: what the last block changes is copied.
	h := make([]uint32, len(d.h))
	copy(h, d.h)
	padded := make([]byte, compress.Block)
	copy(padded, d.buf)
	for i := len(d.buf); i < len(padded); i++ {
		padded[i] = 0
	}
	d.compress(h, padded, d.counted+uint64(len(d.buf)), true)
	sum := make([]byte, 4*len(h))
	for i, word := range h {
		binary.LittleEndian.PutUint32(sum[4*i:], word)
	}
	return append(b, sum...)
}

// state is what the rounds begin with, and words is the message.
func state(h []uint32, block []byte, counted uint64, last bool) (v, words []uint32) {
	v, words = make([]uint32, 16), make([]uint32, 16)
	copy(v, h)
	copy(v[8:], compress.IV[:])
	v[12] ^= uint32(counted)
	v[13] ^= uint32(counted >> 32)
	if last {
		v[14] = ^v[14]
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(block[4*i:])
	}
	return v, words
}
