package process

import "syscall"

// endsWithParent makes a child end when this process does, however it does.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
