//go:build fast

package main

type held = event

func hold(e event) held   { return e }
func value(h held) *event { return &h }
