//go:build !linux && !darwin

package top

import "os"

// size reports false: pages are printed one after another.
func size(*os.File) (columns, lines int, ok bool) { return 0, 0, false }

func readKeys(*os.File) (restore func(), ok bool) { return nil, false }
