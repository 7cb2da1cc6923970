//go:build planttime

package work

const steps = 10500
