//go:build !linux

package drill

import "syscall"

// endsWithParent makes a child end when this process does, where the system can be
// told to.
func endsWithParent() *syscall.SysProcAttr { return nil }
