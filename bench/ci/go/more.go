//go:build !plantallocation

package work

const more = false
