//go:build plantallocation

package work

const more = true
