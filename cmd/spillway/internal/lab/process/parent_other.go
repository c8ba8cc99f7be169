//go:build !linux

package process

import "syscall"

// endsWithParent ends a child when this process ends, on systems that support it.
func endsWithParent() *syscall.SysProcAttr { return nil }
