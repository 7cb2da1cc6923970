// Package cleared is package arrays, but clears the rest of the last block in one go.
//
// It knows the usual hash only: 32 bytes, no key. For more, take package blake2s.
package cleared

import (
	"encoding/binary"

	"example.org/blake2s/internal/compress"
)

// A Digest computes one hash.
type Digest struct {
	h       [8]uint32
	counted uint64
	buf     [compress.Block]byte
	filled  int
}

// parameters is the block that says which hash of the family it is.
func parameters() (block [32]byte) {
	block[0], block[2], block[3] = 32, 1, 1
	return block
}

// New returns a Digest that has seen nothing.
func New() *Digest {
	block := parameters()
	d := new(Digest)
	for i := range d.h {
		d.h[i] = compress.IV[i] ^ binary.LittleEndian.Uint32(block[4*i:])
	}
	return d
}

// Write adds p to what is hashed.
func (d *Digest) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		if d.filled == compress.Block {
			d.counted += compress.Block
			compress.Pure(&d.h, &d.buf, d.counted, compress.Flags{})
			d.filled = 0
		}
		n := copy(d.buf[d.filled:], p)
		d.filled += n
		p = p[n:]
	}
	return written, nil
}

// Sum appends the hash of what was written to b.
func (d *Digest) Sum(b []byte) []byte {
	// More may be written afterwards: what the last block changes is copied.
	last := *d
	clear(last.buf[last.filled:])
	last.counted += uint64(last.filled)
	compress.Pure(&last.h, &last.buf, last.counted, compress.Flags{Block: ^uint32(0)})
	sum := make([]byte, 4*len(last.h))
	for i, word := range last.h {
		binary.LittleEndian.PutUint32(sum[4*i:], word)
	}
	return append(b, sum...)
}
