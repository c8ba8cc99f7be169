//go:build !linux

package drill

import "syscall"

// endsWithParent ends a child when this process ends, on systems that support it.
func endsWithParent() *syscall.SysProcAttr { return nil }
