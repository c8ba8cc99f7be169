//go:build !linux

package wire

import "net"

// HungUp returns false: the state is not known here.
func HungUp(net.Conn) bool { return false }

// full returns true: it is not known here.
func full(net.Conn) bool { return true }
