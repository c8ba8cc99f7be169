//go:build !linux

package link

import "net"

// HungUp reports that nothing is known.
func HungUp(net.Conn) bool { return false }

// full reports that it may be.
func full(net.Conn) bool { return true }
